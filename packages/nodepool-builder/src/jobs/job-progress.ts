import type { WorkerJob } from '@nodepool-builder/gearman-node';
import type { Progress } from '@nodepool-builder/image-builder';

/** Tells a job's submitter, in whole per cent, how far it has come; says each per cent once. */
export function reportProgress(job: Pick<WorkerJob, 'sendStatus'>): (progress: Progress) => void {
  let last = -1;
  return ({ done, total }) => {
    const percent = total > 0 ? Math.floor((Math.min(done, total) * 100) / total) : 0;
    if (percent <= last) return;
    last = percent;
    job.sendStatus(percent, 100);
  };
}
