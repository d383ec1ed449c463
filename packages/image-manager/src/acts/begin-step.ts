import type { Step } from '../planning/step.ts';
import type { ActContext } from './act-context.ts';
import type { Acts } from './acts.ts';
import { followBuild, recordBuild } from './build.ts';
import { deleteBuild, deleteUpload, discardUpload } from './delete.ts';
import { followUpload, recordUpload } from './upload.ts';

/** The requests that a build answers: their numbers, by disk image. */
type Demands = ReadonlyMap<string, readonly number[]>;

const BEGIN: {
  readonly [A in Step['act']]: (
    context: ActContext,
    acts: Acts,
    step: Extract<Step, { act: A }>,
    demands: Demands,
  ) => Promise<void> | void;
} = {
  build: async (context, acts, { diskimage: name, reason }, demands) => {
    const diskimage = context.configuration().diskimages.find((candidate) => candidate.name === name);
    if (diskimage === undefined) return;
    const id = await recordBuild(context, { diskimage, reason, requests: demands.get(name) ?? [] });
    acts.begin(id, (signal) => followBuild(context, id, signal));
  },
  'resume-build': (context, acts, { imageId }) =>
    acts.begin(imageId, (signal) => followBuild(context, imageId, signal)),
  upload: async (context, acts, step) => {
    const id = await recordUpload(context, step);
    acts.begin(id, (signal) => followUpload(context, id, signal));
  },
  'resume-upload': (context, acts, { uploadId }) =>
    acts.begin(uploadId, (signal) => followUpload(context, uploadId, signal)),
  'delete-upload': (context, acts, { uploadId, reason }) =>
    acts.begin(uploadId, (signal) => deleteUpload(context, uploadId, reason, signal)),
  'delete-build': (context, acts, { imageId, reason }) =>
    acts.begin(imageId, (signal) => deleteBuild(context, imageId, reason, signal)),
  discard: (context, acts, { uploadId }) =>
    acts.begin(uploadId, (signal) => discardUpload(context, uploadId, signal)),
  prune: (context, _, { builds, uploads }) =>
    context.state.change({ prunedBuilds: builds, prunedUploads: uploads }),
};

/** Begins a step of a plan. Resolves when it is on record; the rest goes on as an act. */
export async function beginStep<A extends Step['act']>(
  context: ActContext,
  acts: Acts,
  step: Extract<Step, { act: A }>,
  demands: Demands,
): Promise<void> {
  await BEGIN[step.act](context, acts, step, demands);
}
