import { CancelRequest } from './gearman/cancellation.ts';
import { newestFirst } from './planning/survey.ts';
import type { Build, InvalidRequest, ManagerState, PendingRequest, Request, Upload } from './records.ts';
import type { StateChange } from './store/leadership.ts';
import { deletionOf } from './tasks/delete.ts';
import type { TaskContext, Tasks } from './tasks/tasks.ts';

/** The change that a request makes, or the reason why it is rejected. */
type Outcome = StateChange | string;

/** A request for a build that has not started. */
export interface RequestedBuild {
  readonly number: number;
  readonly diskimage: string;
}

/**
 * Handles requests. Rejects invalid ones with a warning. Returns the builds to start.
 *
 * @param tasks the running tasks of builds and uploads
 */
export async function handleRequests(
  context: TaskContext,
  pending: readonly PendingRequest[],
  tasks: Pick<Tasks, 'ids' | 'abort'>,
): Promise<readonly RequestedBuild[]> {
  const { state, configuration, logger } = context;
  const diskimages = new Set(configuration().diskimages.map(({ name }) => name));
  let builds: RequestedBuild[] = [];
  for (const { number, request } of pending) {
    if (request.kind === 'build' && diskimages.has(request.diskimage)) {
      builds.push({ number, diskimage: request.diskimage });
      continue;
    }
    let outcome: Outcome;
    if (request.kind === 'cancel') {
      const withdrawn = builds.filter(({ diskimage }) => diskimage === request.id);
      builds = builds.filter((build) => !withdrawn.includes(build));
      outcome = cancel(context, tasks, request);
      if (withdrawn.length > 0) {
        const handledRequests = withdrawn.map((build) => build.number);
        outcome = { ...(typeof outcome === 'string' ? {} : outcome), handledRequests };
      }
    } else outcome = outcomeOf(context, request);
    if (typeof outcome === 'string') logger.warn(`request ${number}, ${request.kind}: ${outcome}`);
    const change = typeof outcome === 'string' ? {} : outcome;
    await state.change({ ...change, handledRequests: [...(change.handledRequests ?? []), number] });
  }
  return builds;
}

/** Ends a build or an upload. A running task cancels its job; without a task, the record changes at once. */
function cancel(
  { state, now }: TaskContext,
  tasks: Pick<Tasks, 'ids' | 'abort'>,
  { id, by }: Extract<Request, { kind: 'cancel' }>,
): Outcome {
  const reason = new CancelRequest(by);
  const cancelled = { state: 'failed', endedAt: now(), error: reason.message, cancelledBy: by } as const;
  const builds = [...state.builds.values()].filter(
    (build) => build.state === 'building' && [build.id, build.diskimage].includes(id),
  );
  const uploads = [...state.uploads.values()].filter(
    (upload) => upload.state === 'uploading' && upload.id === id,
  );
  if (builds.length + uploads.length === 0) return `nothing to cancel: ${id} neither waits nor runs`;
  for (const record of [...builds, ...uploads]) tasks.abort(record.id, reason);
  return {
    builds: builds.filter((build) => !tasks.ids.has(build.id)).map((build) => ({ ...build, ...cancelled })),
    uploads: uploads.filter((each) => !tasks.ids.has(each.id)).map((each) => ({ ...each, ...cancelled })),
  };
}

/**
 * Pauses or unpauses a disk image. The record names the user who did so first. Unpausing needs a record only to
 * override the configuration.
 */
function pause(
  { state, configuration, now, logger }: TaskContext,
  { kind, diskimage, by }: Extract<Request, { kind: 'pause' | 'unpause' }>,
): Outcome {
  const record = state.pauses.get(diskimage);
  const entry = configuration().diskimages.find(({ name }) => name === diskimage);
  const isPaused = kind === 'pause';
  if (isPaused && entry === undefined)
    return `disk image "${diskimage}" is not configured; nothing is paused`;
  const needsRecord = isPaused || entry?.pause === true;
  if (needsRecord ? record?.isPaused === isPaused : record === undefined) return {};
  logger.info(`disk image ${diskimage}: ${kind}d by ${by}`);
  if (!needsRecord) return { endedPauses: [diskimage] };
  return { pauses: [{ id: diskimage, isPaused, by, since: now() }] };
}

function outcomeOf(
  context: TaskContext,
  request: Exclude<Request, { kind: 'cancel' }> | InvalidRequest,
): Outcome {
  const { state } = context;
  switch (request.kind) {
    case 'pause':
    case 'unpause':
      return pause(context, request);
    case 'build':
      return `disk image "${request.diskimage}" is not configured; nothing is built`;
    case 'delete-build':
      return deleteBuild(state, request.imageId);
    case 'delete-upload':
      return deleteUpload(state, request.uploadId);
    case 'rollback':
      return rollback(state, request.diskimage, request.imageId);
    case 'invalid':
      return request.reason;
  }
}

/** Deletes a build and all its uploads, even the last good ones, because a request overrides `keep`. */
function deleteBuild({ builds, uploads }: ManagerState, imageId: string): Outcome {
  const build = builds.get(imageId);
  if (build?.state !== 'ready') return `no image ${imageId} to delete; dib-image-list shows all images`;
  return {
    builds: [{ ...build, state: 'deleting', withdrawn: true }],
    uploads: [...uploads.values()]
      .filter((upload) => upload.imageId === imageId && isDeletable(upload))
      .map(deletionOf),
  };
}

function deleteUpload({ uploads }: ManagerState, uploadId: string): Outcome {
  const upload = uploads.get(uploadId);
  if (upload === undefined || !isDeletable(upload)) {
    return `no upload ${uploadId} to delete; image-list shows all uploads`;
  }
  return { uploads: [deletionOf(upload)] };
}

function isDeletable({ state }: Upload): boolean {
  return state === 'ready' || state === 'missing';
}

/**
 * Returns the builds of a disk image that are on disk or in a provider and were not withdrawn, newest first. A rollback
 * withdraws the first, so that the second is in use again.
 */
export function rollbackChoices({ builds, uploads }: ManagerState): (diskimage: string) => readonly Build[] {
  const uploaded = new Set<string>();
  for (const upload of uploads.values()) if (upload.state === 'ready') uploaded.add(upload.imageId);
  const good = [...builds.values()].filter(
    (build) => !build.withdrawn && (build.state === 'ready' || uploaded.has(build.id)),
  );
  const goodOf = Map.groupBy(good, ({ diskimage }) => diskimage);
  return (diskimage) => newestFirst(goodOf.get(diskimage) ?? []);
}

/**
 * Withdraws the newest of the {@link rollbackChoices}, so that the previous one is in use again.
 *
 * @param imageId the build to withdraw; the rollback is rejected if it is no longer the newest. Default: the newest.
 */
export function rollback(state: ManagerState, diskimage: string, imageId?: string): Outcome {
  const [newest, previous] = rollbackChoices(state)(diskimage);
  if (newest === undefined) {
    return `disk image "${diskimage}" has no ready build to withdraw; request a build`;
  }
  if (imageId !== undefined && newest.id !== imageId) {
    return `${imageId} is no longer the newest build of disk image "${diskimage}"; ${newest.id} is`;
  }
  if (previous === undefined) {
    return `${newest.id} is the only good build of disk image "${diskimage}"; request a new build first`;
  }
  return { builds: [{ ...newest, withdrawn: true }] };
}
