import { createHash } from 'node:crypto';
import { ImageError } from '@nodepool-builder/image-builder';

/** What cloud-init writes to the console once it has made the keys. The last block counts: keys may be made anew. */
const BLOCK = /-----BEGIN SSH HOST KEY KEYS-----(.*?)-----END SSH HOST KEY KEYS-----/gs;

const KEY = /\b(?:ssh-|ecdsa-|sk-)[\w@.-]+ ([A-Za-z0-9+/]+={0,3})/g;

/** Fingerprints of the SSH host keys in a console log; none if its system does not print them, or not yet. */
export function announcedKeys(consoleLog: string): ReadonlySet<string> {
  const block = [...consoleLog.matchAll(BLOCK)].at(-1)?.[1] ?? '';
  return new Set([...block.matchAll(KEY)].map(([, key = '']) => fingerprint(key)));
}

/** As `ssh-keygen -l` shows it. */
export function fingerprint(key: string): string {
  return fingerprintOf(createHash('sha256').update(Buffer.from(key, 'base64')).digest());
}

/** A SHA-256 digest as `ssh-keygen -l` shows it. */
export function fingerprintOf(digest: Buffer): string {
  return `SHA256:${digest.toString('base64').replace(/(?<!=)=+$/, '')}`;
}

/** Pins the key of a machine: an SSH host key or a certificate. The console may announce it. */
export class HostKey {
  #pinned: string | undefined;
  #announced: ReadonlySet<string> = new Set();
  #isConfirmed = false;

  /** @param pinned what a process before this one knew. */
  constructor(pinned?: string) {
    this.#pinned = pinned;
  }

  /** In base64; undefined before the first login. */
  get pinned(): string | undefined {
    return this.#pinned;
  }

  /** Whether the console says the same. */
  get isConfirmed(): boolean {
    return this.#isConfirmed;
  }

  /**
   * Learns the fingerprints that the console announces.
   *
   * @throws ImageError `host-key-changed` if the pinned key is not among them
   */
  learn(announced: ReadonlySet<string>): void {
    this.#announced = announced;
    if (this.#pinned === undefined || announced.size === 0) return;
    if (!this.isAnnounced(this.#pinned)) throw changed(this.#pinned, announced);
    this.#isConfirmed = true;
  }

  /** Whether the console announces this key. */
  isAnnounced(key: string): boolean {
    return this.#announced.has(fingerprint(key));
  }

  /** What is pinned, and why, for people. */
  describe(): string {
    const reason = this.#isConfirmed ? 'as the console announces it' : 'trusted at the first login';
    return `the host key is ${fingerprint(this.#pinned ?? '')}, ${reason}`;
  }

  /** Refuses a key that is not the right one, before anybody logs in. */
  check(key: string): void {
    if (this.#pinned !== undefined && key !== this.#pinned) {
      throw changed(key, new Set([fingerprint(this.#pinned)]));
    }
    if (this.#pinned === undefined && this.#announced.size > 0 && !this.isAnnounced(key)) {
      throw new ImageError(
        'login-refused',
        `the machine has the host key ${fingerprint(key)}, its console announces ${list(this.#announced)}`,
      );
    }
  }

  /** From now on this one is the right one. */
  pin(key: string): void {
    this.#pinned = key;
    this.#isConfirmed = this.isAnnounced(key);
  }
}

/** @param expected fingerprints */
function changed(key: string, expected: ReadonlySet<string>): ImageError {
  return new ImageError(
    'host-key-changed',
    `the machine has the host key ${fingerprint(key)} instead of ${list(expected)}: ` +
      'a step made new ones, or somebody else answers; nothing more is sent there',
  );
}

function list(fingerprints: ReadonlySet<string>): string {
  return [...fingerprints].join(' or ');
}
