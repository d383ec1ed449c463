import { setTimeout as delay } from 'node:timers/promises';
import { checkRange, MAX_TIMER_DELAY } from '../argument-checks.ts';
import type { ServerAddress } from './server-address.ts';

/** Pauses between attempts to connect, in milliseconds. */
export interface BackoffOptions {
  /** Maximum first pause. Default 100. */
  readonly minDelay?: number;
  /** Maximum pause. Default 5,000. */
  readonly maxDelay?: number;
}

const DEFAULT_MIN_DELAY = 100;
const DEFAULT_MAX_DELAY = 5000;

/**
 * A server and the pauses between attempts to connect to it. Each pause is twice as long as the last one, up to a
 * maximum, and is reduced at random by up to half, so that a fleet does not reconnect at once. The pauses grow across
 * connections until the server replies to a request, because a server that accepts connections and closes them is as
 * unusable as one that is down.
 */
export class PacedServer {
  readonly address: ServerAddress;
  readonly #minDelay: number;
  readonly #maxDelay: number;
  #failures = 0;
  #readyAt = 0;

  /** @throws GearmanError `invalid-argument` */
  constructor(address: ServerAddress, options: BackoffOptions = {}) {
    const { minDelay = DEFAULT_MIN_DELAY, maxDelay = DEFAULT_MAX_DELAY } = options;
    checkRange('minDelay', minDelay, 1, MAX_TIMER_DELAY);
    checkRange('maxDelay', maxDelay, minDelay, MAX_TIMER_DELAY);
    this.address = address;
    this.#minDelay = minDelay;
    this.#maxDelay = maxDelay;
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
    const full = Math.min(this.#maxDelay, this.#minDelay * 2 ** this.#failures);
    this.#failures += 1;
    this.#readyAt = performance.now() + full * (1 - Math.random() / 2);
  }

  /** Records that the server replied to a request. */
  replied(): void {
    this.#failures = 0;
  }
}
