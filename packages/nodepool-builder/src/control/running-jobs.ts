import { EventEmitter } from 'node:events';
import type { WorkerJob } from '@nodepool-builder/gearman-node';
import type { Progress, SettingsOf } from '@nodepool-builder/image-builder';
import type { SettingsSchema } from '@nodepool-builder/image-builder/module-kit';
import { reportProgress } from '../jobs/job-reply.ts';

const TEXT = { type: 'string' } as const satisfies SettingsSchema;

/** Schema of a {@link RunningJob}. */
export const RUNNING_JOB = {
  type: 'object',
  required: ['kind', 'image-id', 'handle', 'started', 'percent'],
  properties: {
    kind: { enum: ['build', 'upload'] },
    'image-id': TEXT,
    diskimage: TEXT, // of a build: diskimages[].name
    provider: TEXT, // of an upload: providers[].name
    'image-name': TEXT, // of an upload: providers[].images[].name
    'upload-id': TEXT, // of an upload: see `UploadRequest.uploadId`
    handle: TEXT, // Gearman's handle of the job
    started: TEXT, // in ISO 8601
    percent: { type: 'integer' },
  },
} as const satisfies SettingsSchema;

/** A build or an upload that runs in this process, with its progress. */
export type RunningJob = SettingsOf<typeof RUNNING_JOB>;

/** What a job says of itself when it starts. */
export type StartedJob = Omit<RunningJob, 'handle' | 'started' | 'percent'>;

/** The builds and uploads that run in this process. It emits `changed` when one starts or ends. */
export class RunningJobs extends EventEmitter<{ changed: [] }> {
  readonly #jobs = new Set<RunningJob>();

  /** In the order of their starts. */
  get all(): readonly RunningJob[] {
    return [...this.#jobs];
  }

  /** Runs the work of a job, and has it listed until it ends. Its progress goes to the clients of the job, too. */
  async run<T>(
    job: Pick<WorkerJob, 'handle' | 'sendStatus'>,
    started: StartedJob,
    work: (onProgress: (progress: Progress) => void) => Promise<T>,
  ): Promise<T> {
    const running = { ...started, handle: job.handle, started: new Date().toISOString(), percent: 0 };
    this.#jobs.add(running);
    this.emit('changed');
    try {
      return await work(
        reportProgress({
          sendStatus: (percent, total) => {
            running.percent = percent;
            job.sendStatus(percent, total);
          },
        }),
      );
    } finally {
      this.#jobs.delete(running);
      this.emit('changed');
    }
  }
}
