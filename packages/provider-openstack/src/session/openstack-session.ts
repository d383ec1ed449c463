import type { Logger } from '@nodepool-builder/image-builder';
import { TokenKeeper } from '@nodepool-builder/image-builder/internal';
import type { CloudSettings } from '../cloud-settings.ts';
import { Keystone } from './keystone.ts';
import type { Token } from './token-request.ts';
import { Transport, type TransportOptions } from './transport.ts';

/** Min remaining lifetime of a token for a new request, in milliseconds (MIN_TOKEN_LIFE_SECONDS of keystoneauth). */
const MIN_LIFETIME = 120_000;

export interface SessionOptions extends TransportOptions {
  /** Called with the name of each successful request and its duration in milliseconds. */
  readonly onTask?: ((task: string, milliseconds: number) => void) | undefined;
}

/**
 * A connection to a cloud with one set of credentials. The service clients share a token, a rate limit and retries. The
 * session connects on first use.
 */
export class OpenStackSession {
  readonly settings: CloudSettings;
  readonly transport: Transport;
  /** Keeper of the token; undefined for a cloud without Keystone. */
  readonly tokens: TokenKeeper<Token> | undefined;
  readonly onTask: SessionOptions['onTask'];
  readonly #closing = new AbortController();

  constructor(settings: CloudSettings, options: SessionOptions) {
    const { auth } = settings;
    this.settings = settings;
    this.transport = new Transport(settings, options);
    this.onTask = options.onTask;
    if (auth.type === 'none') return;
    const keystone = new Keystone(auth, this.transport);
    const issue = (signal: AbortSignal) => keystone.issue(AbortSignal.any([signal, this.closing]));
    this.tokens = new TokenKeeper(issue, MIN_LIFETIME, this.transport.clock);
  }

  /** Aborts when the session is closed. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /** Returns the project of the credentials; undefined for a cloud without Keystone. */
  async projectId(signal: AbortSignal): Promise<string | undefined> {
    return (await this.tokens?.current(signal))?.projectId;
  }

  /** Aborts all running requests; they reject with `aborted`. */
  close(): void {
    this.#closing.abort(new Error(`the session with cloud ${this.settings.name} was closed`));
  }
}

/** Options of a provider's cloud. */
export interface CloudOptions {
  /** Finds the cloud and its credentials. Called on first use, and again after a failure. */
  readonly settings: () => Promise<CloudSettings>;
  readonly logger: Logger;
  /** Rate limit and retries of requests. */
  readonly session?: Omit<SessionOptions, 'logger'>;
}

/** Opens a session on first use, and again after a failure. */
export class LazyCloud<Cloud> {
  readonly #options: CloudOptions;
  readonly #describe: (session: OpenStackSession) => Cloud;
  #opened: Promise<{ readonly session: OpenStackSession; readonly cloud: Cloud }> | undefined;

  /** @param describe called for each session */
  constructor(options: CloudOptions, describe: (session: OpenStackSession) => Cloud) {
    this.#options = options;
    this.#describe = describe;
  }

  async open(): Promise<Cloud> {
    if (this.#opened === undefined) {
      const opened = this.#connect();
      this.#opened = opened;
      opened.catch(() => {
        // Another session may have been opened after a close.
        if (this.#opened === opened) this.#opened = undefined;
      });
    }
    return (await this.#opened).cloud;
  }

  /** Aborts running requests; they reject with `aborted`. */
  close(): void {
    this.#opened?.then(
      ({ session }) => session.close(),
      () => {}, // No session was opened.
    );
    this.#opened = undefined;
  }

  async #connect(): Promise<{ readonly session: OpenStackSession; readonly cloud: Cloud }> {
    const { settings, session: options, logger } = this.#options;
    const session = new OpenStackSession(await settings(), { ...options, logger });
    return { session, cloud: this.#describe(session) };
  }
}
