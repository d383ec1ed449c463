import { createHash } from 'node:crypto';
import { ImageError } from '../errors.ts';

/** What cloud-init writes to the console once it has made the keys. The last block counts: keys may be made anew. */
const BLOCK = /-----BEGIN SSH HOST KEY KEYS-----(.*?)-----END SSH HOST KEY KEYS-----/gs;

const KEY = /\b(?:ssh-|ecdsa-|sk-)[\w@.-]+ ([A-Za-z0-9+/]+={0,3})/g;

/** The host keys in a console log, in base64; none if its system does not print them, or not yet. */
export function announcedKeys(consoleLog: string): ReadonlySet<string> {
  const block = [...consoleLog.matchAll(BLOCK)].at(-1)?.[1] ?? '';
  return new Set([...block.matchAll(KEY)].map(([, key = '']) => key));
}

/** As `ssh-keygen -l` shows it. */
export function fingerprint(key: string): string {
  const digest = createHash('sha256').update(Buffer.from(key, 'base64')).digest('base64');
  return `SHA256:${digest.replace(/=+$/, '')}`;
}

/** Which host key is the right one: what the console says, else the first that one could log in with. */
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
   * Learns what the console says.
   *
   * @throws ImageError `host-key-changed` if it contradicts what is pinned
   */
  learn(consoleLog: string): void {
    this.#announced = announcedKeys(consoleLog);
    if (this.#pinned === undefined || this.#announced.size === 0) return;
    if (!this.#announced.has(this.#pinned)) throw changed(this.#pinned, this.#announced);
    this.#isConfirmed = true;
  }

  /** What is pinned, and why, for people. */
  describe(): string {
    const reason = this.#isConfirmed ? 'as the console announces it' : 'trusted at the first login';
    return `the host key is ${fingerprint(this.#pinned ?? '')}, ${reason}`;
  }

  /** Refuses a key that is not the right one, before anybody logs in. */
  check(key: string): void {
    if (this.#pinned !== undefined && key !== this.#pinned) throw changed(key, new Set([this.#pinned]));
    if (this.#pinned === undefined && this.#announced.size > 0 && !this.#announced.has(key)) {
      throw new ImageError(
        'login-refused',
        `the machine has the host key ${fingerprint(key)}, its console announces ${list(this.#announced)}`,
      );
    }
  }

  /** From now on this one is the right one. */
  pin(key: string): void {
    this.#pinned = key;
    this.#isConfirmed = this.#announced.has(key);
  }
}

function changed(key: string, expected: ReadonlySet<string>): ImageError {
  return new ImageError(
    'host-key-changed',
    `the machine has the host key ${fingerprint(key)} instead of ${list(expected)}: ` +
      'a step made new ones, or somebody else answers; nothing more is sent there',
  );
}

function list(keys: ReadonlySet<string>): string {
  return [...keys].map(fingerprint).join(' or ');
}
