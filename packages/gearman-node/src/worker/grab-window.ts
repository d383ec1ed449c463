/** The packets that grab a job, each with its fallback for servers that do not support it. */
export const GRAB_PACKETS = {
  GRAB_JOB_ALL: 'GRAB_JOB_UNIQ',
  GRAB_JOB_UNIQ: 'GRAB_JOB',
  GRAB_JOB: undefined,
} as const;

/** Number of consecutive lone jobs after which the next job is also expected to be alone. */
const LIKELY = 4;

/** Interval, in lone jobs, of the grabs that check whether more jobs are queued. */
const PROBE_INTERVAL = 8;

/**
 * Predicts the number of waiting jobs from the replies to earlier grabs. With a queue, several outstanding grabs save
 * round trips; with single jobs, skipping the grab after each job saves a third of all packets.
 */
export class GrabWindow {
  #window = 1;
  #jobsSinceSleep = 0;
  #loneJobs = 0;

  /** Maximum number of outstanding grabs. It grows with each job, because jobs often come in groups. */
  get size(): number {
    return this.#window;
  }

  /**
   * True if the worker should sleep after this job without a grab. The server replies to PRE_SLEEP with NOOP if it has
   * another job.
   */
  get isLoneJob(): boolean {
    return this.#jobsSinceSleep === 1 && this.#loneJobs >= LIKELY && this.#loneJobs % PROBE_INTERVAL !== 0;
  }

  /** Records a grab that returned a job. */
  served(): void {
    this.#window *= 2;
    this.#jobsSinceSleep += 1;
  }

  /** Records a grab that returned no job. */
  drained(): void {
    this.#window = 1;
  }

  /** Records that the worker went to sleep. */
  slept(): void {
    this.#window = 1;
    if (this.#jobsSinceSleep === 1) this.#loneJobs += 1;
    else if (this.#jobsSinceSleep > 1) this.#loneJobs = 0;
    this.#jobsSinceSleep = 0;
  }
}
