import { newestFirst } from './planning/survey.ts';
import type { InvalidRequest, ManagerState, PendingRequest, Request } from './records.ts';
import type { StateChange } from './store/state-store.ts';
import type { TaskContext } from './tasks/tasks.ts';

/** The change that a request makes, or the reason why it is rejected. */
type Outcome = StateChange | string;

/** A request for a build that has not started. */
export interface RequestedBuild {
  readonly number: number;
  readonly diskimage: string;
}

/** Handles requests. Rejects invalid ones with a warning. Returns the builds to start. */
export async function handleRequests(
  { state, configuration, logger }: TaskContext,
  pending: readonly PendingRequest[],
): Promise<readonly RequestedBuild[]> {
  const diskimages = new Set(configuration().diskimages.map(({ name }) => name));
  const builds: RequestedBuild[] = [];
  for (const { number, request } of pending) {
    if (request.kind === 'build' && diskimages.has(request.diskimage)) {
      builds.push({ number, diskimage: request.diskimage });
      continue;
    }
    const outcome = outcomeOf(state, request);
    if (typeof outcome === 'string') logger.warn(`request ${number}, ${request.kind}: ${outcome}`);
    const change = typeof outcome === 'string' ? {} : outcome;
    await state.change({ ...change, handledRequests: [number] });
  }
  return builds;
}

function outcomeOf(state: ManagerState, request: Request | InvalidRequest): Outcome {
  switch (request.kind) {
    case 'build':
      return `disk image "${request.diskimage}" is not configured; nothing is built`;
    case 'delete-build':
      return deleteBuild(state, request.imageId);
    case 'delete-upload':
      return deleteUpload(state, request.uploadId);
    case 'rollback':
      return rollback(state, request.diskimage);
    case 'invalid':
      return request.reason;
  }
}

/** Deletes all uploads too, even the last good ones: a request overrides `keep`. */
function deleteBuild({ builds, uploads }: ManagerState, imageId: string): Outcome {
  const build = builds.get(imageId);
  if (build?.state !== 'ready') return `no image ${imageId} to delete; dib-image-list shows all images`;
  return {
    builds: [{ ...build, state: 'deleting', withdrawn: true }],
    uploads: [...uploads.values()]
      .filter((upload) => upload.imageId === imageId && upload.state === 'ready')
      .map((upload) => ({ ...upload, state: 'deleting' })),
  };
}

function deleteUpload({ uploads }: ManagerState, uploadId: string): Outcome {
  const upload = uploads.get(uploadId);
  if (upload?.state !== 'ready') return `no upload ${uploadId} to delete; image-list shows all uploads`;
  return { uploads: [{ ...upload, state: 'deleting' }] };
}

/** Withdraws the newest build that is on disk or in a provider, so that the previous one is in use again. */
export function rollback(state: ManagerState, diskimage: string): Outcome {
  const uploaded = new Set<string>();
  for (const upload of state.uploads.values()) if (upload.state === 'ready') uploaded.add(upload.imageId);
  const good = [...state.builds.values()]
    .filter((build) => build.diskimage === diskimage && !build.withdrawn)
    .filter((build) => build.state === 'ready' || uploaded.has(build.id));
  const [newest, previous] = newestFirst(good, (build) => build);
  if (newest === undefined) {
    return `disk image "${diskimage}" has no ready build to withdraw; request a build`;
  }
  if (previous === undefined) {
    return `${newest.id} is the only good build of disk image "${diskimage}"; request a new build first`;
  }
  return { builds: [{ ...newest, withdrawn: true }] };
}
