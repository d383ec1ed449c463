import { createHash } from 'node:crypto';
import { ImageError } from '@nodepool-builder/image-builder';

/**
 * Block that cloud-init writes to the console with the host keys. The last one counts, because keys may be regenerated.
 */
const BLOCK = /-----BEGIN SSH HOST KEY KEYS-----(.*?)-----END SSH HOST KEY KEYS-----/gs;

const KEY = /\b(?:ssh-|ecdsa-|sk-)[\w@.-]+ ([A-Za-z0-9+/]+={0,3})/g;

/** Fingerprints of the SSH host keys in a console log; empty if the system has not printed them. */
export function announcedKeys(consoleLog: string): ReadonlySet<string> {
  const block = [...consoleLog.matchAll(BLOCK)].at(-1)?.[1] ?? '';
  return new Set([...block.matchAll(KEY)].map(([, key = '']) => fingerprint(key)));
}

/** SHA-256 fingerprint in the notation of `ssh-keygen -l`. */
export function fingerprint(key: string): string {
  return fingerprintOf(createHash('sha256').update(Buffer.from(key, 'base64')).digest());
}

/** Formats a SHA-256 digest as `ssh-keygen -l` does. */
function fingerprintOf(digest: Buffer): string {
  return `SHA256:${digest.toString('base64').replace(/(?<!=)=+$/, '')}`;
}

/** Block that a machine writes to its console. The last one counts, because a boot may replace the certificate. */
const CERTIFICATE_BLOCK =
  /-----BEGIN WINRM CERTIFICATE FINGERPRINT-----([^-]*)-----END WINRM CERTIFICATE FINGERPRINT-----/g;

/** SHA-256 fingerprint as `openssl x509 -fingerprint -sha256` prints it, with or without colons. */
const HEXADECIMAL = /^(?:[0-9a-f]{2}:?){31}[0-9a-f]{2}$/i;

/** SHA-256 fingerprint in the notation of `ssh-keygen -l` and of our logs. */
const BASE64 = /^SHA256:[A-Za-z0-9+/]{43}$/;

/** Converts either notation to the notation of {@link fingerprintOf}; undefined if the text has neither. */
export function parseFingerprint(text: string): string | undefined {
  if (BASE64.test(text)) return text;
  return HEXADECIMAL.test(text) ? fingerprintOf(Buffer.from(text.replaceAll(':', ''), 'hex')) : undefined;
}

/** Fingerprints of certificates that a console log announces for WinRM. */
export function announcedCertificates(consoleLog: string): ReadonlySet<string> {
  const block = [...consoleLog.matchAll(CERTIFICATE_BLOCK)].at(-1)?.[1] ?? '';
  const found = block.split(/\s+/).map(parseFingerprint);
  return new Set(found.filter((one) => one !== undefined));
}

/** Pins the key of a machine: an SSH host key or a certificate. The console may announce it. */
export class HostKey {
  /** The pinned key in base64; undefined before the first login. */
  pinned: string | undefined;
  #announced: ReadonlySet<string> = new Set();

  /** @param pinned key that an earlier process pinned */
  constructor(pinned?: string) {
    this.pinned = pinned;
  }

  /** True if the console announces the pinned key. */
  get isConfirmed(): boolean {
    return this.pinned !== undefined && this.isAnnounced(this.pinned);
  }

  /**
   * Reads the fingerprints that the console announces.
   *
   * @throws ImageError `host-key-changed` if the pinned key is not among them
   */
  learn(announced: ReadonlySet<string>): void {
    this.#announced = announced;
    if (this.pinned === undefined || announced.size === 0) return;
    if (!this.isConfirmed) throw changed(this.pinned, announced);
  }

  /** Returns whether the console announces this key. */
  isAnnounced(key: string): boolean {
    return this.#announced.has(fingerprint(key));
  }

  /** Describes the pinned key and its source, for people. */
  describe(): string {
    const reason = this.isConfirmed ? 'announced by the console' : 'trusted at the first login';
    return `the host key is ${fingerprint(this.pinned ?? '')}, ${reason}`;
  }

  /** Rejects a wrong key before the login. */
  check(key: string): void {
    if (this.pinned !== undefined && key !== this.pinned) {
      throw changed(key, new Set([fingerprint(this.pinned)]));
    }
    if (this.pinned === undefined && this.#announced.size > 0 && !this.isAnnounced(key)) {
      throw new ImageError(
        'login-refused',
        `the machine has the host key ${fingerprint(key)}, but its console announces ${list(this.#announced)}`,
      );
    }
  }
}

/** @param expected fingerprints */
function changed(key: string, expected: ReadonlySet<string>): ImageError {
  return new ImageError(
    'host-key-changed',
    `the machine has the host key ${fingerprint(key)} instead of ${list(expected)}: ` +
      'a step generated new ones, or another machine responds; nothing more is sent there',
  );
}

function list(fingerprints: ReadonlySet<string>): string {
  return [...fingerprints].join(' or ');
}
