import { createHmac, hash, randomBytes, timingSafeEqual } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import type { FastifyRequest } from 'fastify';
import { CommandError, failing, usageError } from '../terms/command-error.ts';
import type { WebOptions } from './web-options.ts';

/** Minimum length of a token in characters, because a shorter one could be guessed. */
const MIN_TOKEN_LENGTH = 16;

/** Duration of a session in seconds. */
export const LOGIN_SECONDS = 12 * 3600;

/** Maximum number of sessions. A login above it ends the oldest one. */
const MAX_SESSIONS = 1000;

export const SESSION_COOKIE = 'nodepool-builder';

/** Name of any user who sends the token, which several people may know. */
const TOKEN_HOLDER = 'token holder';

/** A person or a program that may act. */
export interface User {
  /** Name in records and logs. */
  readonly name: string;
  /** Text that a form must send back; undefined if the request itself proves that no other page has sent it. */
  readonly formToken: string | undefined;
}

/** Decides who may rebuild, cancel, roll back and delete. */
export class Access {
  /** True if users can log in with a token. */
  readonly hasLogin: boolean;
  readonly #token: Buffer | undefined;
  readonly #key = randomBytes(32);
  /** Expiry in milliseconds by session, the oldest first. A restart ends all sessions. */
  readonly #sessions = new Map<string, number>();
  readonly #options: WebOptions;
  readonly #proxies: ReadonlySet<string>;

  private constructor(token: string | undefined, options: WebOptions) {
    this.#token = token === undefined ? undefined : digest(token);
    this.hasLogin = token !== undefined;
    this.#options = options;
    this.#proxies = new Set(
      options.webTrustedProxy?.split(',').map((address) => plainAddress(address.trim())),
    );
  }

  /**
   * Reads the token.
   *
   * @throws CommandError if it cannot be read or is too short, or if an option lacks its counterpart
   */
  static async open(options: WebOptions): Promise<Access> {
    const { webTokenFile: file, webTrustedHeader, webTrustedProxy } = options;
    if ((webTrustedHeader === undefined) !== (webTrustedProxy === undefined)) {
      throw usageError('--web-trusted-header requires --web-trusted-proxy, and vice versa; give both');
    }
    if (file === undefined) return new Access(undefined, options);
    const unreadable = failing('cannot read the token of the status page', 'correct --web-token-file');
    const token = (await readFile(file, 'utf8').catch(unreadable)).trim();
    if (token.length < MIN_TOKEN_LENGTH) {
      const remedy = `write one with "openssl rand -hex 32 > ${file}"`;
      throw new CommandError(`the token in ${file} has fewer than ${MIN_TOKEN_LENGTH} characters; ${remedy}`);
    }
    if (((await stat(file)).mode & 0o077) !== 0) {
      throw new CommandError(`other users can read the token in ${file}; run "chmod 600 ${file}"`);
    }
    return new Access(token, options);
  }

  /** Returns the user of a request; undefined for a client with read-only access. */
  userOf({ headers, cookies, socket }: FastifyRequest): User | undefined {
    const [, bearer] = /^bearer +(\S+)$/i.exec(headers.authorization ?? '') ?? [];
    // Another site's page cannot make a browser send this header.
    if (bearer !== undefined)
      return this.isToken(bearer) ? { name: TOKEN_HOLDER, formToken: undefined } : undefined;
    const name = headers[this.#options.webTrustedHeader?.toLowerCase() ?? ''];
    if (typeof name === 'string' && name !== '' && this.#proxies.has(plainAddress(socket.remoteAddress))) {
      return { name, formToken: this.#sign(`form of user ${name}`) };
    }
    const session = cookies[SESSION_COOKIE];
    if (session === undefined || (this.#sessions.get(this.#sign(session)) ?? 0) <= Date.now())
      return undefined;
    return { name: TOKEN_HOLDER, formToken: this.#sign(`form of session ${session}`) };
  }

  isToken(text: string): boolean {
    return this.#token !== undefined && timingSafeEqual(this.#token, digest(text.trim()));
  }

  /** Starts a session, for the cookie of a user who has logged in. */
  startSession(): string {
    const session = randomBytes(24).toString('base64url');
    this.#sessions.set(this.#sign(session), Date.now() + LOGIN_SECONDS * 1000);
    const [oldest = ''] = this.#sessions.keys();
    if (this.#sessions.size > MAX_SESSIONS) this.#sessions.delete(oldest);
    return session;
  }

  /** Ends the session of a request, so that a copy of its cookie is worthless. */
  endSession({ cookies }: FastifyRequest): void {
    this.#sessions.delete(this.#sign(cookies[SESSION_COOKIE] ?? ''));
  }

  /** True if the cookie must not be sent without TLS. */
  get isSecure(): boolean {
    return this.#options.webUrl?.startsWith('https:') ?? false;
  }

  /** Returns true unless the browser reports that another site's page has sent the request. */
  isOwnPage({ headers }: FastifyRequest): boolean {
    const site = headers['sec-fetch-site'];
    if (site !== undefined && site !== 'same-origin' && site !== 'none') return false;
    const { origin } = headers;
    if (origin === undefined) return true;
    return origin === this.#options.webUrl || URL.parse(origin)?.host === headers.host?.toLowerCase();
  }

  #sign(text: string): string {
    return createHmac('sha256', this.#key).update(text).digest('base64url');
  }
}

/** Hashes a text for comparison, because timingSafeEqual requires equal lengths. */
function digest(text: string): Buffer {
  return hash('sha256', text, 'buffer');
}

/** Removes the prefix of an IPv4 address in IPv6. */
function plainAddress(address = ''): string {
  return address.replace(/^::ffff:(?=\d+\.)/, '');
}
