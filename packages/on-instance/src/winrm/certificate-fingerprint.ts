import { fingerprintOf } from '../ssh/host-key.ts';

/** Block that a machine writes to its console. The last one counts: the certificate may be replaced at a boot. */
const BLOCK =
  /-----BEGIN WINRM CERTIFICATE FINGERPRINT-----([^-]*)-----END WINRM CERTIFICATE FINGERPRINT-----/g;

/** SHA-256 fingerprint as `openssl x509 -fingerprint -sha256` prints it, with or without colons. */
const HEXADECIMAL = /^(?:[0-9a-f]{2}:?){31}[0-9a-f]{2}$/i;

/** SHA-256 fingerprint as `ssh-keygen -l` prints those of keys, and as our logs do. */
const BASE64 = /^SHA256:[A-Za-z0-9+/]{43}$/;

/** A fingerprint as {@link fingerprintOf} writes it, from either notation; undefined if the text is neither. */
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
