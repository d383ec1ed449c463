import type { ManagerState, Request, StateStore } from '@nodepool-builder/image-manager';
import type { Configuration } from '../configuration/configuration.ts';
import type { ConfiguredCommand } from './configured-command.ts';
import { withStore } from './manager-store.ts';
import { CommandError, findByName } from './output.ts';

/** A command that puts a request into the store of the manager. */
interface RequestCommand extends Omit<ConfiguredCommand, 'run'> {
  /**
   * The request.
   *
   * @throws CommandError if the manager would refuse it
   */
  readonly request: (
    subject: string,
    state: ManagerState,
    configuration: Configuration,
  ) => Request | Promise<Request>;
}

function notFound(message: string): CommandError {
  return new CommandError(message, { exitReason: 'not-found' });
}

const REQUESTS: readonly RequestCommand[] = [
  {
    name: 'rebuild',
    description: '', // see rebuild.ts
    request: (diskimage, _, { diskimages, file }) => {
      findByName(diskimages, 'disk image', diskimage, file);
      return { kind: 'build', diskimage };
    },
  },
  {
    name: 'rollback',
    argument: ['<diskimage>', 'name of the disk image'],
    description:
      'Asks the manager to withdraw the newest image of a disk image. The image before it is in use again; the ' +
      'withdrawn one is deleted from each provider that has the older one.',
    example: 'debian',
    request: async (diskimage, state) => {
      if (![...state.builds.values()].some((build) => build.diskimage === diskimage)) {
        throw notFound(`disk image "${diskimage}" has no image; dib-image-list lists all images`);
      }
      const { rollback } = await import('@nodepool-builder/image-manager');
      const outcome = rollback(state, diskimage);
      if (typeof outcome === 'string') throw new CommandError(outcome, { exitReason: 'refused' });
      return { kind: 'rollback', diskimage, imageId: outcome.builds?.[0]?.id };
    },
  },
  {
    name: 'dib-image-delete',
    argument: ['<image-id>', 'id of the image, as dib-image-list shows it'],
    description:
      'Asks the manager to delete an image: in all providers, even if it is the last one there, and on disk. Another ' +
      'one is built when it is due, or at once if none is left. "image-delete" deletes only the files of a builder.',
    example: 'debian-0000000042-k7f3q2xa',
    request: (imageId, { builds }) => {
      if (builds.get(imageId)?.state === 'ready') return { kind: 'delete-build', imageId };
      throw notFound(`image ${imageId} does not exist or is not ready; dib-image-list lists all images`);
    },
  },
  {
    name: 'upload-delete',
    argument: ['<upload-id>', 'id of the upload, as image-list shows it'],
    description:
      'Asks the manager to delete one image from one provider. If the image is still in use there, the manager uploads ' +
      'it again.',
    example: '0000000043-k7f3q2xa',
    request: (uploadId, { uploads }) => {
      if (/^(?:ready|missing)$/.test(uploads.get(uploadId)?.state ?? '')) {
        return { kind: 'delete-upload', uploadId };
      }
      throw notFound(
        `upload ${uploadId} does not exist, or is neither ready nor missing; image-list lists all uploads`,
      );
    },
  },
];

/**
 * Puts the request of a command into the store of the manager.
 *
 * @returns its number
 * @throws CommandError if the manager would refuse it; StoreError
 */
export async function askManager(
  command: string,
  subject: string,
  configuration: Configuration,
  store: StateStore,
): Promise<number> {
  const row = REQUESTS.find(({ name }) => name === command);
  if (row === undefined) throw new TypeError(`no command ${command}`);
  const request = await row.request(subject, await store.read(), configuration);
  if (request.kind !== 'rollback') return await store.ask(request);
  const { number, isNew } = await store.askOnce(request);
  if (isNew) return number;
  const reason = `request ${number} to roll back disk image "${subject}" is still pending`;
  const remedy = 'wait until the manager has served it; it serves requests only while it runs';
  throw new CommandError(`${reason}; ${remedy}`, { exitReason: 'refused' });
}

/** Asks the manager, and prints the number of the request. */
export async function sendRequest(
  command: string,
  subject: string,
  configuration: Configuration,
): Promise<void> {
  await withStore(configuration, async (store) => {
    const number = await askManager(command, subject, configuration, store);
    console.error(`asked the manager (request ${number}); dib-image-list and image-list show what it does`);
  });
}

/**
 * The commands that only send a request to the manager, which serves it within seconds, or once it runs. `rebuild` is in
 * a file of its own.
 */
export const MANAGER_REQUESTS: readonly ConfiguredCommand[] = REQUESTS.filter(
  ({ name }) => name !== 'rebuild',
).map(({ request: _, ...row }) => ({
  ...row,
  run: (configuration, _options, subject) => sendRequest(row.name, subject, configuration),
}));
