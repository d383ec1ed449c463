/** Default time for a job server to answer, in milliseconds. */
export const DEFAULT_TIMEOUT = 30_000;

/**
 * Detects a silent peer: fires when requests are outstanding and none was answered for `limit` milliseconds. It does
 * not keep the process alive.
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

  /** Number of unanswered requests. */
  get outstanding(): number {
    return this.#outstanding;
  }

  /** Records a sent request. */
  sent(): void {
    this.#outstanding += 1;
    if (this.#outstanding === 1) this.#restart();
  }

  /** Records that requests were answered. */
  answered(count = 1): void {
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
    // One timer for the lifetime of the connection: a new one for each request costs more than the request.
    this.#timer = this.#timer?.refresh() ?? this.#start();
  }

  #start(): NodeJS.Timeout {
    return setTimeout(() => {
      if (this.#outstanding > 0) this.#onSilence();
    }, this.#limit).unref();
  }
}
