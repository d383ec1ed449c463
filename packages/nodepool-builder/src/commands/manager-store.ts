import { existsSync } from 'node:fs';
import { writeDurably } from '@nodepool-builder/image-builder/module-kit';
import type { StateStore } from '@nodepool-builder/image-manager';
import type { Configuration } from '../configuration/configuration.ts';
import { DATABASE_URL } from '../configuration/manager.ts';
import { CommandError, failing } from '../terms/command-error.ts';
import type { ConfiguredCommand } from './configured-command.ts';
import { exportText, readExport } from './image-data-file.ts';

/** Time limit for a running manager to stop, in milliseconds. */
const STOP_TIMEOUT = 10_000;

/** `export-image-data FILE` and `import-image-data FILE`: the manager's state as JSON. */
export const IMAGE_DATA: readonly ConfiguredCommand[] = [
  {
    name: 'export-image-data',
    description:
      "Writes the manager's records of builds and uploads to a file, with their attestations. The manager may be running.",
    argument: ['<file>', 'file to write; an existing one is replaced'],
    example: 'images.json',
    run: async (configuration, _, file) => {
      const { exportDocuments, exportState } = await import('@nodepool-builder/image-manager');
      const state = await withStore(configuration, async (store) => {
        const exported = await exportState(store);
        const unwritable = failing(`${file} cannot be written`, 'name another file');
        await writeDurably(file, exportText(exported, exportDocuments(store, exported))).catch(unwritable);
        return exported;
      });
      console.error(`wrote ${state.builds.length} builds and ${state.uploads.length} uploads to ${file}`);
    },
  },
  {
    name: 'import-image-data',
    description:
      'Loads the file of export-image-data into an empty store, to move to another host, or from a file to PostgreSQL. ' +
      'From then on the images belong to this store. Stop the manager first, and run none with the old store again.',
    argument: ['<file>', 'file of export-image-data'],
    example: 'images.json',
    run: async (configuration, _, file) => {
      const unreadable = failing(
        `${file} cannot be read`,
        'name a file that export-image-data wrote',
        'not-found',
      );
      const { state: data, documents } = await readExport(file).catch(unreadable);
      const { importState } = await import('@nodepool-builder/image-manager');
      await withOpenStore(configuration, async (store) => {
        const signal = AbortSignal.timeout(STOP_TIMEOUT);
        await importState(store, data, { signal, documents }).catch((cause: unknown) => {
          if (cause !== signal.reason) throw cause;
          throw new CommandError('a manager works with this store; stop it first', {
            exitReason: 'refused',
            cause,
          });
        });
        const { builds, uploads } = await store.read();
        console.error(`read ${builds.size} builds and ${uploads.size} uploads from ${file}`);
      });
    },
  },
];

/** Whether the manager's store exists: a file on disk, or a configured database. */
export function hasStore({ manager }: Configuration): boolean {
  return DATABASE_URL.test(manager.store) || existsSync(manager.store);
}

/** The part of the store that a read-only view of the manager's state needs. */
export type StateView = Pick<StateStore, 'owner' | 'read' | 'requests' | 'describeLeader'>;

/** The state before the first run of a manager. */
const EMPTY: StateView = {
  owner: '',
  read: async () => ({ owner: '', nextNumber: 1, builds: new Map(), uploads: new Map(), pauses: new Map() }),
  requests: async () => [],
  describeLeader: async () => undefined,
};

/** Reads the manager's state, or an empty one before the first run of a manager. */
export async function withStateView<T>(
  configuration: Configuration,
  look: (state: StateView) => Promise<T>,
): Promise<T> {
  return hasStore(configuration) ? await withStore(configuration, look) : await look(EMPTY);
}

/**
 * Opens the store of the manager for one task, and closes it.
 *
 * @throws CommandError if no manager has ever run with this configuration; StoreError
 */
export async function withStore<T>(
  configuration: Configuration,
  work: (store: StateStore) => Promise<T>,
): Promise<T> {
  if (!hasStore(configuration)) {
    throw new CommandError(
      `no manager has worked here: ${configuration.manager.store} does not exist; start nodepool-builder manage, or correct manager.store`,
      { exitReason: 'not-found' },
    );
  }
  return await withOpenStore(configuration, work);
}

async function withOpenStore<T>(
  { manager }: Configuration,
  work: (store: StateStore) => Promise<T>,
): Promise<T> {
  // Imported on demand: the daemon starts faster without it.
  const { openStateStore } = await import('@nodepool-builder/image-manager');
  const store = await openStateStore(manager.store);
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}
