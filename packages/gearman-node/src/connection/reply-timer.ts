/** Default timeout of a job server's reply, in milliseconds. */
export const DEFAULT_TIMEOUT = 30_000;

/**
 * Detects a silent peer. It fires when requests are outstanding and none has had a reply for `limit` milliseconds. It
 * does not keep the process alive.
 */
export class ReplyTimer {
  readonly #limit: number;
  readonly #onSilence: () => void;
  #outstanding = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(limit: number, onSilence: () => void) {
    this.#limit = limit;
    this.#onSilence = onSilence;
  }

  /** Number of requests without a reply. */
  get outstanding(): number {
    return this.#outstanding;
  }

  /** Records a sent request. */
  sent(): void {
    this.#outstanding += 1;
    if (this.#outstanding === 1) this.#restart();
  }

  /** Records replies to requests. */
  replied(count = 1): void {
    this.#outstanding = Math.max(0, this.#outstanding - count);
    if (this.#outstanding > 0) this.#restart();
  }

  /** Forgets all outstanding requests. */
  stop(): void {
    this.#outstanding = 0;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #restart(): void {
    // One timer serves the whole connection: a new one for each request costs more than the request.
    this.#timer = this.#timer?.refresh() ?? this.#start();
  }

  #start(): NodeJS.Timeout {
    return setTimeout(() => {
      if (this.#outstanding > 0) this.#onSilence();
    }, this.#limit).unref();
  }
}
