/** So many jobs in a row that each came alone make it likely that the next one will, too. */
const LIKELY = 4;

/** After so many lone jobs it is looked whether others have begun to queue up behind them. */
const PROBE_INTERVAL = 8;

/**
 * Guesses from what the server gave how many jobs it will have. Where jobs queue up, several grabs at a time save
 * waiting; where they come one by one, it saves a third of all packets not to grab after each job in vain.
 */
export class GrabForecast {
  #window = 1;
  #jobsSinceSleep = 0;
  #loneJobs = 0;

  /** How many grabs may be outstanding. It grows with each job, for where one was there are often more. */
  get window(): number {
    return this.#window;
  }

  /** Whether to sleep after this job without a grab: PRE_SLEEP is answered with NOOP if there is another job. */
  get isLoneJob(): boolean {
    return this.#jobsSinceSleep === 1 && this.#loneJobs >= LIKELY && this.#loneJobs % PROBE_INTERVAL !== 0;
  }

  /** A grab brought a job. */
  served(): void {
    this.#window *= 2;
    this.#jobsSinceSleep += 1;
  }

  /** A grab brought none. */
  drained(): void {
    this.#window = 1;
  }

  /** The worker went to sleep. */
  slept(): void {
    this.#window = 1;
    if (this.#jobsSinceSleep === 1) this.#loneJobs += 1;
    else if (this.#jobsSinceSleep > 1) this.#loneJobs = 0;
    this.#jobsSinceSleep = 0;
  }
}
