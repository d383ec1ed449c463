import type { Logger } from '@nodepool-builder/image-builder';
import {
  type Clock,
  type RetryLimits,
  RetryPolicy,
  SYSTEM_CLOCK,
} from '@nodepool-builder/image-builder/module-kit';
import type { CloudSettings } from '../cloud-settings.ts';
import { AuthenticatedClient, type ClientParts, type ServiceRequest } from './authenticated-client.ts';
import { Keystone } from './keystone.ts';
import type { ServiceClient } from './service-client.ts';
import { TokenKeeper } from './token-keeper.ts';
import { Transport } from './transport.ts';

/** Retries of requests. */
const DEFAULT_RETRY_LIMITS: RetryLimits = {
  attempts: 6,
  firstDelay: 1,
  longestDelay: 30,
  longestRetryAfter: 120,
};

/** What an {@link OpenStackSession} needs besides the cloud's settings. */
export interface SessionOptions {
  readonly logger: Logger;
  /** Seconds between the starts of two requests (`rate` of `nodepool.yaml`). Default 0. */
  readonly rate?: number;
  /** Default {@link DEFAULT_RETRY_LIMITS}. */
  readonly retry?: Partial<RetryLimits>;
  /** `https_proxy`, `http_proxy` and `no_proxy`, as in an environment; Node takes them from 22.21 on. Default: none. */
  readonly proxyEnv?: Readonly<Record<string, string | undefined>>;
  /** Default {@link SYSTEM_CLOCK}. */
  readonly clock?: Clock;
  /** Jitter of the delays, from 0 to below 1. Default `Math.random`. */
  readonly random?: () => number;
}

/** One cloud as one user: a token that its clients share, one rate, one set of limits. Nothing is asked before the first request. */
export class OpenStackSession implements AsyncDisposable {
  readonly #parts: ClientParts;
  readonly #closing = new AbortController();

  constructor(settings: CloudSettings, options: SessionOptions) {
    const { logger, rate = 0, retry, proxyEnv, clock = SYSTEM_CLOCK, random = Math.random } = options;
    const transport = new Transport(settings, { clock, rate, proxyEnv });
    const retries = new RetryPolicy({ ...DEFAULT_RETRY_LIMITS, ...retry }, { clock, random });
    const { auth } = settings;
    const closing = this.#closing.signal;
    let tokens: TokenKeeper | undefined;
    if (auth.type !== 'none') {
      const keystone = new Keystone(auth, transport, retries, logger);
      tokens = new TokenKeeper(() => keystone.issue(closing), clock);
    }
    this.#parts = { settings, transport, retries, logger, tokens, closing };
  }

  /** A client of one service. Whether the cloud has that service shows at the first request. */
  client(service: ServiceRequest): ServiceClient {
    return new AuthenticatedClient(service, this.#parts);
  }

  /** The project that the credentials are for; undefined for a cloud without Keystone. */
  async projectId(signal: AbortSignal): Promise<string | undefined> {
    return (await this.#parts.tokens?.current(signal))?.projectId;
  }

  /** Ends all requests under way; they reject with `aborted`. */
  close(): void {
    this.#closing.abort(new Error(`the session with cloud ${this.#parts.settings.name} was closed`));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
  }
}
