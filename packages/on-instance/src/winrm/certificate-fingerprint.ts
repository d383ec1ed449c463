import { fingerprintOf } from '../ssh/host-key.ts';

/** Block that a machine writes to its console. The last one counts, because a boot may replace the certificate. */
const BLOCK =
  /-----BEGIN WINRM CERTIFICATE FINGERPRINT-----([^-]*)-----END WINRM CERTIFICATE FINGERPRINT-----/g;

/** SHA-256 fingerprint as `openssl x509 -fingerprint -sha256` prints it, with or without colons. */
const HEXADECIMAL = /^(?:[0-9a-f]{2}:?){31}[0-9a-f]{2}$/i;

/** SHA-256 fingerprint in the notation of `ssh-keygen -l` and of our logs. */
const BASE64 = /^SHA256:[A-Za-z0-9+/]{43}$/;

/** Converts either notation to that of {@link fingerprintOf}; undefined if the text has neither. */
export function parseFingerprint(text: string): string | undefined {
  if (BASE64.test(text)) return text;
  return HEXADECIMAL.test(text) ? fingerprintOf(Buffer.from(text.replaceAll(':', ''), 'hex')) : undefined;
}

/** Fingerprints of certificates that a console log announces for WinRM. */
export function announcedCertificates(consoleLog: string): ReadonlySet<string> {
  const block = [...consoleLog.matchAll(BLOCK)].at(-1)?.[1] ?? '';
  const found = block.split(/\s+/).map(parseFingerprint);
  return new Set(found.filter((one) => one !== undefined));
}
