/** How long a job server may take to answer, in milliseconds, unless an option says otherwise. */
export const DEFAULT_TIMEOUT = 30_000;

/**
 * Watches for a peer that leaves requests unanswered: it fires when some are outstanding and none was answered for
 * `limit` milliseconds. It keeps no process alive.
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

  /** Requests that were sent and not answered. */
  get outstanding(): number {
    return this.#outstanding;
  }

  /** A request was sent. */
  sent(): void {
    this.#outstanding += 1;
    if (this.#outstanding === 1) this.#restart();
  }

  /** One or more requests were answered. */
  answered(count = 1): void {
    this.#outstanding = Math.max(0, this.#outstanding - count);
    if (this.#outstanding > 0) this.#restart();
  }

  /** Nothing is expected any more. */
  stop(): void {
    this.#outstanding = 0;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #restart(): void {
    // One timer for the connection's life: to set a new one for each request costs more than the request.
    this.#timer = this.#timer?.refresh() ?? this.#start();
  }

  #start(): NodeJS.Timeout {
    return setTimeout(() => {
      if (this.#outstanding > 0) this.#onSilence();
    }, this.#limit).unref();
  }
}
