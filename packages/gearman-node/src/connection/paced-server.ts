import { setTimeout as delay } from 'node:timers/promises';
import { Backoff, type BackoffOptions } from './backoff.ts';
import type { ServerAddress } from './server-address.ts';

/**
 * A server and the pauses between the attempts to connect to it. The pauses grow over all connections to the server
 * until it answers a request: a server that accepts and hangs up is no better than one that is down.
 */
export class PacedServer {
  readonly address: ServerAddress;
  readonly #backoff: Backoff;
  #readyAt = 0;

  /** @throws GearmanError `invalid-argument` */
  constructor(address: ServerAddress, options: BackoffOptions | undefined) {
    this.address = address;
    this.#backoff = new Backoff(options);
  }

  /** Milliseconds until the next attempt may begin. */
  get pause(): number {
    return Math.max(0, this.#readyAt - performance.now());
  }

  /** Resolves when the next attempt may begin, or when the signal aborts. */
  async ready(signal: AbortSignal): Promise<void> {
    const { pause } = this;
    if (pause > 0) await delay(pause, undefined, { signal }).catch(() => {});
  }

  /** An attempt failed, or a connection was lost. */
  lost(): void {
    this.#readyAt = performance.now() + this.#backoff.next();
  }

  /** The server answered a request. */
  answered(): void {
    this.#backoff.reset();
  }
}
