import type { ActContext } from './acts/act-context.ts';
import { rollback } from './planning/rollback.ts';
import type { ManagerState, PendingRequest, Request } from './records.ts';
import type { StateChange } from './store/state-store.ts';

/** What becomes of a request: a change, or the reason why there is none. */
type Answer = StateChange | string;

/** A request for a build waits until the build is on record; all others are changes of records. */
type ImmediateRequest = Exclude<Request, { kind: 'build' }>;

const ANSWERS: {
  readonly [K in ImmediateRequest['kind']]: (
    state: ManagerState,
    request: Extract<ImmediateRequest, { kind: K }>,
  ) => Answer;
} = {
  'delete-build': (state, { imageId }) => deleteBuild(state, imageId),
  'delete-upload': (state, { uploadId }) => deleteUpload(state, uploadId),
  rollback: (state, { diskimage }) => {
    const answer = rollback(state, diskimage);
    return 'refused' in answer ? answer.refused : { builds: [answer.withdrawn] };
  },
};

/** Requests for builds that are still to be begun, with their numbers. */
export interface DemandedBuild {
  readonly number: number;
  readonly diskimage: string;
}

/** Does what is asked for; what makes no sense is dropped, with a warning. Returns the builds that are to be begun. */
export async function answerRequests(
  { state, configuration, logger }: ActContext,
  pending: readonly PendingRequest[],
): Promise<readonly DemandedBuild[]> {
  const diskimages = new Set(configuration().diskimages.map(({ name }) => name));
  const builds: DemandedBuild[] = [];
  for (const { number, request } of pending) {
    if (request.kind === 'build' && diskimages.has(request.diskimage)) {
      builds.push({ number, diskimage: request.diskimage });
      continue;
    }
    const answer = request.kind === 'build' ? refuseBuild(request.diskimage) : answerOf(state, request);
    if (typeof answer === 'string') logger.warn(`request ${number}, ${request.kind}: ${answer}`);
    const change = typeof answer === 'string' ? {} : answer;
    await state.change({ ...change, handledRequests: [number] });
  }
  return builds;
}

function answerOf<K extends ImmediateRequest['kind']>(
  state: ManagerState,
  request: Extract<ImmediateRequest, { kind: K }>,
): Answer {
  // A newer release may have left a request in the store that this one cannot know.
  if (!Object.hasOwn(ANSWERS, request.kind)) return 'this release knows no such request; update the manager';
  return ANSWERS[request.kind](state, request);
}

function refuseBuild(diskimage: string): string {
  return `disk image "${diskimage}" is not configured; nothing is built`;
}

/** A person's word counts for more than what is to be kept: the uploads go too, the last good one among them. */
function deleteBuild({ builds, uploads }: ManagerState, imageId: string): Answer {
  const build = builds.get(imageId);
  if (build?.state !== 'ready')
    return `there is no image ${imageId} to delete; dib-image-list shows what there is`;
  return {
    builds: [{ ...build, state: 'deleting', withdrawn: true }],
    uploads: [...uploads.values()]
      .filter((upload) => upload.imageId === imageId && upload.state === 'ready')
      .map((upload) => ({ ...upload, state: 'deleting' })),
  };
}

function deleteUpload({ uploads }: ManagerState, uploadId: string): Answer {
  const upload = uploads.get(uploadId);
  if (upload?.state !== 'ready')
    return `there is no upload ${uploadId} to delete; image-list shows what there is`;
  return { uploads: [{ ...upload, state: 'deleting' }] };
}
