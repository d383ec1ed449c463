import { existsSync } from 'node:fs';
import { openStateStore, type StateStore } from '@nodepool-builder/image-manager';
import type { Configuration } from '../configuration/configuration.ts';
import { DATABASE_URL } from '../configuration/manager.ts';
import { CommandError } from '../terms/command-error.ts';

/** Returns whether the manager's store exists: a file on disk, or a configured database. */
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
      `no manager has run here: ${configuration.manager.store} does not exist; start nodepool-builder manage, or correct manager.store`,
      'not-found',
    );
  }
  return await withOpenStore(configuration, work);
}

/** Like {@link withStore}, but resolves with undefined if no manager has ever run with this configuration. */
export async function withStoreIfAny<T>(
  configuration: Configuration,
  work: (store: StateStore) => Promise<T>,
): Promise<T | undefined> {
  return hasStore(configuration) ? await withOpenStore(configuration, work) : undefined;
}

/** Opens the manager's store for one task, and closes it. Creates the store if necessary. @throws StoreError */
export async function withOpenStore<T>(
  { manager }: Configuration,
  work: (store: StateStore) => Promise<T>,
): Promise<T> {
  // Imported on demand, so that the daemon starts faster.
  const store = await openStateStore(manager.store);
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}
