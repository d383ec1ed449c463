/** What a handler gets: one job that a server assigned to this worker. */
export abstract class WorkerJob {
  /** The server's name for the job, for instance `H:host:42`. */
  abstract readonly handle: string;
  /** The function that was asked for. */
  abstract readonly function: string;
  /** The submitter's key for coalescing; empty if it gave none. */
  abstract readonly unique: string;
  /** The argument, as the submitter sent it. */
  abstract readonly payload: Buffer;
  /** Aborted when the job must stop: its reason is the GearmanError that says why. */
  abstract readonly signal: AbortSignal;
  /** Aborted when the connection to the job's server is lost: a server such as gearmand then gives the job to another worker. */
  abstract readonly connectionLost: AbortSignal;
  /**
   * Resolves once the server has had the final packet of this job, or when the server is lost or does not answer
   * ECHO_REQ. Never rejects. State that is kept for the case that the job runs again may be dropped then.
   */
  abstract readonly acknowledged: Promise<void>;

  /** Tells the submitter how far the job has come (WORK_STATUS). */
  abstract sendStatus(numerator: number, denominator: number): void;
  /** Sends a piece of the result (WORK_DATA); resolves when there is room for the next one. */
  abstract sendData(data: string | Uint8Array): Promise<void>;
  /** Sends a warning (WORK_WARNING); resolves when there is room for the next one. */
  abstract sendWarning(data: string | Uint8Array): Promise<void>;
}

/** What a handler may return: the payload of WORK_COMPLETE. */
export type JobResult = string | Uint8Array | void;

/**
 * Does one job. Its result is sent as WORK_COMPLETE; a {@link JobFailure} it throws as WORK_FAIL; anything else it
 * throws as WORK_EXCEPTION with the error's message, one line, no traceback.
 */
export type JobHandler = (job: WorkerJob) => Promise<JobResult> | JobResult;
