import type { NewStep, RecordStep, Step } from '../planning/pass.ts';
import type { Build, Upload } from '../records.ts';
import { followBuild, newBuild } from './build.ts';
import { deleteBuild, deleteUpload, discardUpload } from './delete.ts';
import type { TaskContext, Tasks } from './tasks.ts';
import { describeUpload, followUpload, newUpload } from './upload.ts';

/** Numbers of the requests that a build fulfils, by disk image. */
type BuildRequests = ReadonlyMap<string, readonly number[]>;

/** Starts the steps of a plan as tasks. Resolves once all of them are on record. */
export async function startSteps(
  context: TaskContext,
  tasks: Tasks,
  steps: readonly Step[],
  buildRequests: BuildRequests,
): Promise<void> {
  const fresh: NewStep[] = [];
  for (const step of steps) {
    if (step.kind === 'build' || step.kind === 'upload') fresh.push(step);
    else if (step.kind === 'prune') {
      await context.state.change({ prunedBuilds: step.builds, prunedUploads: step.uploads });
    } else startStep(context, tasks, step);
  }
  await startNew(context, tasks, fresh, buildRequests);
}

/** Verb and object of each step, for the log. */
const ACTIONS: Readonly<Record<RecordStep['kind'], string>> = {
  'resume-build': 'follow build',
  'resume-upload': 'follow upload',
  'delete-build': 'delete build',
  'delete-upload': 'delete upload',
  discard: 'discard failed upload',
};

function startStep(context: TaskContext, tasks: Tasks, step: RecordStep): void {
  const work = (signal: AbortSignal): Promise<void> => {
    switch (step.kind) {
      case 'resume-build':
        return followBuild(context, step.imageId, signal);
      case 'resume-upload':
        return followUpload(context, step.uploadId, signal);
      case 'delete-upload':
        return deleteUpload(context, step.uploadId, step.reason, signal);
      case 'delete-build':
        return deleteBuild(context, step.imageId, step.reason, signal);
      case 'discard':
        return discardUpload(context, step.uploadId, signal);
    }
  };
  tasks.start('imageId' in step ? step.imageId : step.uploadId, ACTIONS[step.kind], work);
}

/** Writes all new records at once, because each durable write takes time. */
async function startNew(
  context: TaskContext,
  tasks: Tasks,
  steps: readonly NewStep[],
  buildRequests: BuildRequests,
): Promise<void> {
  if (steps.length === 0) return;
  const { state, leadership, configuration, logger } = context;
  const diskimages = new Map(configuration().diskimages.map((diskimage) => [diskimage.name, diskimage]));
  const builds: Build[] = [];
  const uploads: Upload[] = [];
  const handledRequests: number[] = [];
  let number = await leadership.takeNumbers(steps.length);
  for (const step of steps) {
    if (step.kind === 'upload') uploads.push(newUpload(context, step, number));
    else {
      const diskimage = diskimages.get(step.diskimage);
      if (diskimage === undefined) continue;
      builds.push(newBuild(context, diskimage, step.reason, number));
      handledRequests.push(...(buildRequests.get(step.diskimage) ?? []));
    }
    number += 1;
  }
  await state.change({ builds, uploads, handledRequests });
  for (const { id, reason } of builds) {
    logger.info(`build ${id}: ${reason}`);
    startStep(context, tasks, { kind: 'resume-build', imageId: id, reason });
  }
  for (const upload of uploads) {
    const { id: uploadId, reason } = upload;
    logger.info(`${describeUpload(upload)}: ${reason}`);
    startStep(context, tasks, { kind: 'resume-upload', uploadId, reason });
  }
}
