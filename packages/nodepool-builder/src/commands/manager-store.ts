import { existsSync } from 'node:fs';
import type { StateStore } from '@nodepool-builder/image-manager';
import type { Configuration } from '../configuration/configuration.ts';
import { DATABASE_URL } from '../configuration/normalise.ts';
import { CommandError } from './command-error.ts';

/** Whether there is a manager's store: a file that is there, or a database that is configured. */
export function hasStore({ manager }: Configuration): boolean {
  return DATABASE_URL.test(manager.store) || existsSync(manager.store);
}

/** What a look at the manager's state needs. */
export type StateView = Pick<StateStore, 'owner' | 'read' | 'requests'>;

/** The state before a manager has ever worked. */
const NOTHING: StateView = {
  owner: '',
  read: async () => ({ owner: '', nextNumber: 1, builds: new Map(), uploads: new Map() }),
  requests: async () => [],
};

/** Looks at the manager's state; where none has worked yet, at one that holds nothing. */
export async function withStateView<T>(
  configuration: Configuration,
  look: (state: StateView) => Promise<T>,
): Promise<T> {
  return hasStore(configuration) ? await withStore(configuration, look) : await look(NOTHING);
}

/**
 * Works with the store of the manager, and closes it.
 *
 * @throws CommandError if no manager has ever worked with this configuration; StoreError
 */
export async function withStore<T>(
  configuration: Configuration,
  work: (store: StateStore) => Promise<T>,
): Promise<T> {
  if (!hasStore(configuration)) {
    throw new CommandError(
      `no manager has worked here: ${configuration.manager.store} is not there; start nodepool-builder manage, or correct manager.store`,
    );
  }
  // Not at the top: the daemon does without, and starts the sooner.
  const { openStateStore } = await import('@nodepool-builder/image-manager');
  const store = await openStateStore(configuration.manager.store);
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}
