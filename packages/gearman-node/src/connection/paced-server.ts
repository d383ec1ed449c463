import { setTimeout as delay } from 'node:timers/promises';
import { Backoff, type BackoffOptions } from './backoff.ts';
import type { ServerAddress } from './server-address.ts';

/**
 * A server and the pauses between attempts to connect to it. The pauses grow across connections until the server
 * replies to a request, because a server that accepts connections and closes them is as unusable as one that is down.
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

  /** Milliseconds until the next attempt. */
  get pause(): number {
    return Math.max(0, this.#readyAt - performance.now());
  }

  /** Resolves when it is time for the next attempt, or when the signal aborts. */
  async ready(signal: AbortSignal): Promise<void> {
    const { pause } = this;
    if (pause > 0) await delay(pause, undefined, { signal }).catch(() => {});
  }

  /** Records that an attempt failed, or that a connection was lost. */
  lost(): void {
    this.#readyAt = performance.now() + this.#backoff.next();
  }

  /** Records that the server replied to a request. */
  replied(): void {
    this.#backoff.reset();
  }
}
