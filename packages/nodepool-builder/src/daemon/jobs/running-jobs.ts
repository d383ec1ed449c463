import { EventEmitter } from 'node:events';
import { type WorkerJob, WorkFailError } from '@nodepool-builder/gearman-node';
import type { ImageRepository, Logger } from '@nodepool-builder/image-builder';
import { watchRetries } from '@nodepool-builder/image-builder/internal';
import { decodeCancel } from '@nodepool-builder/image-manager/protocol';
import { subjectOf } from '../../protocol/functions.ts';
import { CancelledError, reportProgress } from '../../protocol/job-reply.ts';
import type { Reading, RunningJob } from '../../protocol/running-job.ts';
import { type MeteredProgress, ProgressMeter } from './progress-meter.ts';
import type { Statistics } from './statistics.ts';

/** State that all builds and uploads share. */
export interface JobContext {
  readonly repository: ImageRepository;
  /** Directory of the logs of builds and uploads. */
  readonly logDirectory: string;
  readonly running: RunningJobs;
  readonly statistics: Statistics;
  readonly logger: (name: string) => Logger;
}

/** The data that a job provides when it starts. */
export type StartedJob = Omit<RunningJob, 'handle' | 'started' | keyof Reading>;

/** A build or an upload that has ended. */
export interface EndedJob extends StartedJob {
  /** Argument of the job. */
  readonly payload: Buffer;
  /** Error of the job; absent after a success. */
  readonly error?: unknown;
  /** True if the builder stopped the job because it has to stop itself. The job server assigns the job again. */
  readonly isInterrupted: boolean;
}

/** The builds and uploads that run in this process. It emits `changed` when one starts or ends, and `ended`. */
export class RunningJobs extends EventEmitter<{ changed: []; ended: [EndedJob] }> {
  readonly #jobs = new Map<Omit<RunningJob, 'percent'>, { meter: ProgressMeter; cancel: AbortController }>();

  /**
   * Runs an `image-cancel:<image-id>` job. It stops the build or the upload, whose own job then fails.
   *
   * @throws WorkFailError if it does not run; Error for an invalid argument
   */
  runCancelJob(job: Pick<WorkerJob, 'function' | 'payload'>): void {
    const imageId = subjectOf(job.function);
    const { by, 'upload-id': uploadId } = decodeCancel(job.payload);
    const found = [...this.#jobs].filter(
      ([one]) => one['image-id'] === imageId && one['upload-id'] === uploadId,
    );
    for (const [, { cancel }] of found) cancel.abort(new CancelledError(by));
    if (found.length === 0)
      throw new WorkFailError(`this builder does not run a build or upload of image ${imageId}`);
  }

  /** The running jobs, in the order of their start. */
  get all(): readonly RunningJob[] {
    return Array.from(this.#jobs, ([job, { meter }]) => ({ ...job, ...meter.read() }));
  }

  /**
   * Runs the work of a job, and lists it until it ends. Its progress is also sent to the clients of the job. The signal
   * aborts when the job must stop, or is cancelled.
   *
   * @param expected seconds that the same work took last time
   * @throws CancelledError; errors of the work
   */
  async run<T>(
    job: Pick<WorkerJob, 'handle' | 'payload' | 'sendStatus' | 'signal'>,
    started: StartedJob,
    work: (onProgress: (progress: MeteredProgress) => void, signal: AbortSignal) => Promise<T>,
    expected?: number,
  ): Promise<T> {
    const running = { ...started, handle: job.handle, started: new Date().toISOString() };
    const meter = new ProgressMeter({ expected });
    const cancel = new AbortController();
    this.#jobs.set(running, { meter, cancel });
    this.emit('changed');
    try {
      const report = reportProgress(job);
      const onProgress = (progress: MeteredProgress): void => {
        meter.update(progress);
        report(progress);
      };
      const signal = AbortSignal.any([job.signal, cancel.signal]);
      const result = await watchRetries(
        (retry) => meter.retry(retry),
        () => work(onProgress, signal),
      );
      this.emit('ended', { ...started, payload: job.payload, isInterrupted: false });
      return result;
    } catch (reason) {
      // The error names the user who cancelled the job, instead of a consequence.
      const error: unknown = cancel.signal.aborted ? cancel.signal.reason : reason;
      const isInterrupted = job.signal.aborted && !cancel.signal.aborted;
      this.emit('ended', { ...started, payload: job.payload, error, isInterrupted });
      throw error;
    } finally {
      this.#jobs.delete(running);
      this.emit('changed');
    }
  }
}
