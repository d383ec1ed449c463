import { existsSync } from 'node:fs';
import { openStateStore, type StateStore } from '@nodepool-builder/image-manager';
import type { Configuration } from '../configuration/configuration.ts';
import { DATABASE_URL } from '../configuration/manager.ts';
import { CommandError } from '../terms/command-error.ts';

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
  return await withStore(configuration, look, () => look(EMPTY));
}

/**
 * Opens the store of the manager for one task, and closes it.
 *
 * @param otherwise called if no manager has ever run with this configuration. By default it throws a CommandError.
 * @throws StoreError
 */
export async function withStore<T, Other = never>(
  configuration: Configuration,
  work: (store: StateStore) => Promise<T>,
  otherwise: () => Other | Promise<Other> = () => {
    throw new CommandError(
      `no manager has run here: ${configuration.manager.store} does not exist; start nodepool-builder manage, or correct manager.store`,
      'not-found',
    );
  },
): Promise<T | Other> {
  const { store } = configuration.manager;
  const exists = DATABASE_URL.test(store) || existsSync(store);
  return exists ? await withOpenStore(configuration, work) : await otherwise();
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
