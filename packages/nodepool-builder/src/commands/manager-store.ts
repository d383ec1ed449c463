import { existsSync } from 'node:fs';
import { openStateStore, type StateStore } from '@nodepool-builder/image-manager';
import type { Configuration } from '../configuration/configuration.ts';
import { CommandError } from './command-error.ts';

/** Whether there is a manager's store: a file that is there, or a database that is configured. */
export function hasStore({ manager }: Configuration): boolean {
  return manager.store.startsWith('postgres') || existsSync(manager.store);
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
  const store = await openStateStore(configuration.manager.store);
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}
