import { JobFailure, type WorkerJob } from '@nodepool-builder/gearman-node';
import { JsonReader } from '@nodepool-builder/image-builder/module-kit';
import { subjectOf } from '../protocol/functions.ts';
import type { RunningJobs } from './jobs/running-jobs.ts';

const ARGUMENT = new JsonReader({
  type: 'object',
  required: ['by'],
  properties: {
    by: { type: 'string' }, // who cancels it: `root@host`
    'upload-id': { type: 'string' }, // for an upload of the image instead of its build
  },
});

/** Function that a builder offers while it builds an image or uploads it. */
export function cancelFunction(imageId: string): string {
  return `image-cancel:${imageId}`;
}

/**
 * Runs an `image-cancel:<image-id>` job: stops the build or the upload, whose own job then fails.
 *
 * @throws JobFailure if it does not run; Error for an invalid argument
 */
export function cancelRunning(
  running: Pick<RunningJobs, 'cancel'>,
  job: Pick<WorkerJob, 'function' | 'payload'>,
): void {
  const imageId = subjectOf(job.function);
  const { by, 'upload-id': uploadId } = ARGUMENT.parse(job.payload.toString());
  if (running.cancel(imageId, uploadId, by)) return;
  throw new JobFailure(`no such build or upload of image ${imageId} runs here`);
}
