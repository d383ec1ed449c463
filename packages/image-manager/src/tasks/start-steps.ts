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

type Work = (context: TaskContext, id: string, signal: AbortSignal, reason: string) => Promise<void>;

/** Verb and object of each step, for the log, and its work. */
const TASKS: Readonly<Record<RecordStep['kind'], readonly [action: string, work: Work]>> = {
  'resume-build': ['follow build', followBuild],
  'resume-upload': ['follow upload', followUpload],
  'delete-build': ['delete build', deleteBuild],
  'delete-upload': ['delete upload', deleteUpload],
  discard: ['discard failed upload', discardUpload],
};

function startStep(context: TaskContext, tasks: Tasks, { kind, id, reason }: RecordStep): void {
  const [action, work] = TASKS[kind];
  tasks.start(id, action, (signal) => work(context, id, signal, reason));
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
    startStep(context, tasks, { kind: 'resume-build', id, reason });
  }
  for (const upload of uploads) {
    const { id, reason } = upload;
    logger.info(`${describeUpload(upload)}: ${reason}`);
    startStep(context, tasks, { kind: 'resume-upload', id, reason });
  }
}
