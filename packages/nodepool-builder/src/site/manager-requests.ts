import type { ServerAddress } from '@nodepool-builder/gearman-node';
import {
  type ManagerState,
  type Request,
  rollback,
  type StateStore,
  whyPaused,
} from '@nodepool-builder/image-manager';
import type { Configuration } from '../configuration/configuration.ts';
import { CommandError, findByName } from '../terms/command-error.ts';
import { requireBuilderOf } from './ask-servers.ts';
import { requireManager, serveRequest } from './served-request.ts';

/** Configuration and user of a request to the manager. */
export interface RequestSite {
  readonly configuration: Configuration;
  readonly servers: readonly ServerAddress[];
  /** User who makes the request: `root@host`. */
  readonly by: string;
}

/** A request to the manager, and how to follow it. */
interface Asked {
  readonly request: Request;
  /** @throws CommandError if the manager cannot serve the request now */
  readonly check?: () => Promise<void>;
  /** Describes the outcome; undefined while there is none. */
  readonly outcome: (state: ManagerState) => string | undefined;
  /** Describes why the request waits, if the manager need not serve it now; undefined if it should. */
  readonly whyWaiting?: (state: ManagerState) => string | undefined;
}

/** A command that stores a request for the manager. */
interface RequestCommand {
  readonly name: string;
  readonly description: string;
  readonly argument?: readonly [syntax: string, description: string];
  /** Argument in the example. */
  readonly example?: string;
  /** @throws CommandError if the manager would reject the request */
  readonly ask: (subject: string, state: ManagerState, site: RequestSite) => Asked | Promise<Asked>;
}

/** The commands that send a request to the manager. */
export const REQUESTS: readonly RequestCommand[] = [
  {
    name: 'rebuild',
    argument: ['<diskimage>', 'name of the disk image'],
    description:
      'Requests the manager to build a disk image now, and to upload it wherever it is used, regardless of the age of the newest image. ' +
      '"image-build" only has it built; "build" builds here, without manager and builder.',
    example: 'debian',
    ask: async (name, state, { configuration, servers }) => {
      const entry = findByName(configuration.diskimages, 'disk image', name, configuration.file);
      const paused = whyPaused(state, entry);
      if (paused !== undefined) {
        const remedy = `run "nodepool-builder image-unpause ${name}" first`;
        throw new CommandError(`disk image "${name}" is ${paused}; ${remedy}`, 'refused');
      }
      const isNew = (id: string): boolean => !state.builds.has(id);
      const running = ({ builds }: ManagerState) =>
        [...builds.values()].find((build) => build.diskimage === name && build.state === 'building');
      return {
        request: { kind: 'build', diskimage: name },
        check: () => requireBuilderOf(name, servers, configuration.file),
        outcome: ({ builds }) => {
          const build = [...builds.values()].findLast((one) => one.diskimage === name && isNew(one.id));
          return build && `build ${build.id} is queued; a builder starts it as soon as it is free`;
        },
        whyWaiting: (now) => {
          const current = running(now);
          return current && `the build starts when ${current.id} has ended`;
        },
      };
    },
  },
  {
    name: 'image-pause',
    argument: ['<diskimage>', 'name of the disk image'],
    description:
      'Has the manager neither build nor upload a disk image, nor delete images of it by age, until image-unpause, ' +
      'regardless of "pause" in the configuration. Running builds and uploads continue. The lists show who paused it.',
    example: 'debian',
    ask: (name, _, { configuration, by }) => {
      findByName(configuration.diskimages, 'disk image', name, configuration.file);
      return {
        request: { kind: 'pause', diskimage: name, by },
        outcome: ({ pauses }) => (pauses.get(name)?.isPaused ? `disk image "${name}" is paused` : undefined),
      };
    },
  },
  {
    name: 'image-unpause',
    argument: ['<diskimage>', 'name of the disk image'],
    description:
      'Has the manager build and upload a disk image again, even if the configuration has "pause: true" for it. That setting ' +
      'applies again after the next image-pause, or once it has been removed from the configuration.',
    example: 'debian',
    ask: async (name, { pauses }, { configuration, by }) => {
      const entry = pauses.has(name)
        ? { name, pause: false }
        : findByName(configuration.diskimages, 'disk image', name, configuration.file);
      return {
        request: { kind: 'unpause', diskimage: name, by },
        outcome: (state) =>
          whyPaused(state, entry) === undefined ? `disk image "${name}" is not paused` : undefined,
      };
    },
  },
  {
    name: 'rollback',
    argument: ['<diskimage>', 'name of the disk image'],
    description:
      'Requests the manager to withdraw the newest image of a disk image. The image before it is in use again; the ' +
      'withdrawn one is deleted at the builders and from each provider that has an older one.',
    example: 'debian',
    ask: async (diskimage, state) => {
      if (![...state.builds.values()].some((build) => build.diskimage === diskimage)) {
        throw new CommandError(
          `disk image "${diskimage}" has no image; dib-image-list lists all images`,
          'not-found',
        );
      }
      const planned = rollback(state, diskimage);
      if (typeof planned === 'string') throw new CommandError(planned, 'refused');
      const imageId = planned.builds?.[0]?.id ?? '';
      return {
        request: { kind: 'rollback', diskimage, imageId },
        outcome: ({ builds }) => (builds.get(imageId)?.withdrawn ? `${imageId} is withdrawn` : undefined),
      };
    },
  },
  {
    name: 'dib-image-delete',
    argument: ['<image-id>', 'id of the image, as dib-image-list shows it'],
    description:
      'Requests the manager to delete an image: in all providers, even if it is the last one there, and on disk. Another ' +
      'one is built when it is due, or at once if none is left. "image-delete" deletes only the files of a builder.',
    example: 'debian-0000000042-k7f3q2xa',
    ask: (imageId, { builds }) => {
      if (builds.get(imageId)?.state !== 'ready') {
        throw new CommandError(
          `image ${imageId} does not exist or is not ready; dib-image-list lists all images`,
          'not-found',
        );
      }
      return {
        request: { kind: 'delete-build', imageId },
        outcome: (state) =>
          state.builds.get(imageId)?.state === 'ready' ? undefined : `deleting image ${imageId}`,
      };
    },
  },
  {
    name: 'upload-delete',
    argument: ['<upload-id>', 'id of the upload, as image-list shows it'],
    description:
      'Requests the manager to delete one image from one provider. If the image is still in use there, the manager uploads ' +
      'it again.',
    example: '0000000043-k7f3q2xa',
    ask: (uploadId, { uploads }) => {
      const isThere = (state: Pick<ManagerState, 'uploads'>): boolean =>
        /^(?:ready|missing)$/.test(state.uploads.get(uploadId)?.state ?? '');
      if (!isThere({ uploads })) {
        throw new CommandError(
          `upload ${uploadId} does not exist, or is neither ready nor missing; image-list lists all uploads`,
          'not-found',
        );
      }
      return {
        request: { kind: 'delete-upload', uploadId },
        outcome: (state) => (isThere(state) ? undefined : `deleting upload ${uploadId}`),
      };
    },
  },
];

/**
 * Stores a command's request for the manager, and waits until the manager has served it.
 *
 * @returns a description of the result
 * @throws CommandError `refused`; `unreachable` without storing the request if no manager runs; StoreError
 */
export async function askManager(
  command: string,
  subject: string,
  site: RequestSite,
  store: StateStore,
): Promise<string> {
  const row = REQUESTS.find(({ name }) => name === command);
  if (row === undefined) throw new TypeError(`no command ${command}`);
  const { request, check, outcome, whyWaiting } = await row.ask(subject, await store.read(), site);
  await requireManager(store);
  await check?.();
  return await serveRequest(store, request, (state, isPending) => {
    if (isPending) return whyWaiting?.(state);
    const done = outcome(state);
    if (done !== undefined) return done;
    const remedy = 'check its log';
    throw new CommandError(`the manager rejected the request to ${command} ${subject}; ${remedy}`, 'refused');
  });
}
