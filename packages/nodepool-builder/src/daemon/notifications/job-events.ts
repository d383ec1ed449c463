import { CancelledError } from '../../protocol/cancelled-error.ts';
import { keysOf } from '../../protocol/job-reply.ts';
import { errorMessage } from '../../terms/command-error.ts';
import type { EndedJob } from '../jobs/running-jobs.ts';
import type { EventFacts } from './event.ts';

/**
 * Makes the events of jobs of other clients, such as nodepool's. Our own clients request the reason of a failure: the
 * manager sends the events of its own jobs, and a command prints the result to its user.
 */
export class JobEvents {
  /** Disk images whose last build failed, and pairs of provider and image name whose last upload failed. */
  readonly #failed = new Set<string>();

  /** Returns the event of a job that has ended; undefined for jobs of our own clients, and for jobs that run again. */
  eventOf({ kind, payload, error, isInterrupted, ...job }: EndedJob): EventFacts | undefined {
    if (isInterrupted || keysOf(payload).reason === true) return undefined;
    const place = JSON.stringify([kind, job.diskimage, job.provider, job['image-name']]);
    const end = this.#endOf(place, error);
    const isCancelled = error instanceof CancelledError;
    return {
      id: `${kind}/${job['upload-id'] ?? job['image-id']}/${Date.now()}`,
      event: `${kind}-${end}`,
      diskimage: job.diskimage ?? null,
      'image-id': job['image-id'],
      provider: job.provider ?? null,
      'image-name': job['image-name'] ?? null,
      'upload-id': job['upload-id'] ?? null,
      error: error === undefined ? null : errorMessage(error),
      'cancelled-by': isCancelled ? error.by : null,
    };
  }

  #endOf(place: string, error: unknown): 'cancelled' | 'failed' | 'recovered' | 'succeeded' {
    if (error instanceof CancelledError) return 'cancelled';
    if (error === undefined) return this.#failed.delete(place) ? 'recovered' : 'succeeded';
    this.#failed.add(place);
    return 'failed';
  }
}
