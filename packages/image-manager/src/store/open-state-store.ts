import { StoreError } from '../errors.ts';
import type { StateStore } from './state-store.ts';

/**
 * Opens a store, and creates it if it does not exist: a SQLite file for one host, or `postgresql://user@host/database`
 * for managers on several hosts.
 *
 * @param location - a path, or a libpq URL; PostgreSQL's password may also come from PGPASSWORD or `~/.pgpass`
 * @throws StoreError `store-not-usable`, `store-too-new`
 */
export async function openStateStore(location: string): Promise<StateStore> {
  // Loaded on demand, because Node 22 prints a warning about its SQLite, and most sites do not use PostgreSQL.
  if (/^postgres(?:ql)?:\/\//.test(location)) {
    const { openPostgresStore } = await import('./postgres-store.ts');
    return await openPostgresStore(location);
  }
  if (/^[a-z][a-z\d+.-]*:\/\//i.test(location)) {
    // The message omits the location, which may contain a password.
    throw new StoreError(
      'store-not-usable',
      'the URL of the store does not name a PostgreSQL database; ' +
        'write postgresql://USER@HOST/DATABASE or a path',
    );
  }
  const { openSqliteStore } = await import('./sqlite-store.ts');
  return await openSqliteStore(location);
}
