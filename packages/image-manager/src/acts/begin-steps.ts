import type { Step } from '../planning/step.ts';
import type { Build, Upload } from '../records.ts';
import type { ActContext } from './act-context.ts';
import type { Acts } from './acts.ts';
import { followBuild, newBuild } from './build.ts';
import { deleteBuild, deleteUpload, discardUpload } from './delete.ts';
import { followUpload, newUpload, uploadInWords } from './upload.ts';

/** The requests that a build answers: their numbers, by disk image. */
type Demands = ReadonlyMap<string, readonly number[]>;

/** Steps for which a new record is made. */
type NewStep = Extract<Step, { act: 'build' | 'upload' }>;

/** Steps about a record that is there. */
type RecordStep = Exclude<Step, NewStep | { act: 'prune' }>;

/** Begins the steps of a plan. Resolves when they are on record; the rest goes on as acts. */
export async function beginSteps(
  context: ActContext,
  acts: Acts,
  steps: readonly Step[],
  demands: Demands,
): Promise<void> {
  const fresh: NewStep[] = [];
  for (const step of steps) {
    if (step.act === 'build' || step.act === 'upload') fresh.push(step);
    else if (step.act === 'prune') {
      await context.state.change({ prunedBuilds: step.builds, prunedUploads: step.uploads });
    } else beginStep(context, acts, step);
  }
  await beginNew(context, acts, fresh, demands);
}

const WORK: {
  readonly [A in RecordStep['act']]: (
    context: ActContext,
    step: Extract<RecordStep, { act: A }>,
    signal: AbortSignal,
  ) => Promise<void>;
} = {
  'resume-build': (context, { imageId }, signal) => followBuild(context, imageId, signal),
  'resume-upload': (context, { uploadId }, signal) => followUpload(context, uploadId, signal),
  'delete-upload': (context, { uploadId, reason }, signal) => deleteUpload(context, uploadId, reason, signal),
  'delete-build': (context, { imageId, reason }, signal) => deleteBuild(context, imageId, reason, signal),
  discard: (context, { uploadId }, signal) => discardUpload(context, uploadId, signal),
};

function beginStep<A extends RecordStep['act']>(
  context: ActContext,
  acts: Acts,
  step: Extract<RecordStep, { act: A }>,
): void {
  const id = 'imageId' in step ? step.imageId : step.uploadId;
  acts.begin(id, (signal) => WORK[step.act](context, step, signal));
}

/** All new records are written in one go: a store that writes durably takes its time for each. */
async function beginNew(
  context: ActContext,
  acts: Acts,
  steps: readonly NewStep[],
  demands: Demands,
): Promise<void> {
  if (steps.length === 0) return;
  const { state, configuration, logger } = context;
  const diskimages = new Map(configuration().diskimages.map((diskimage) => [diskimage.name, diskimage]));
  const builds: Build[] = [];
  const uploads: Upload[] = [];
  const handledRequests: number[] = [];
  let number = await state.takeNumbers(steps.length);
  for (const step of steps) {
    if (step.act === 'upload') uploads.push(newUpload(context, step, number));
    else {
      const diskimage = diskimages.get(step.diskimage);
      if (diskimage === undefined) continue;
      builds.push(newBuild(context, diskimage, step.reason, number));
      handledRequests.push(...(demands.get(step.diskimage) ?? []));
    }
    number += 1;
  }
  await state.change({ builds, uploads, handledRequests });
  for (const { id, reason } of builds) {
    logger.info(`build ${id}: ${reason}`);
    acts.begin(id, (signal) => followBuild(context, id, signal));
  }
  for (const upload of uploads) {
    logger.info(`${uploadInWords(upload)}: ${upload.reason}`);
    acts.begin(upload.id, (signal) => followUpload(context, upload.id, signal));
  }
}
