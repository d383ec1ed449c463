import { StoreError } from '../errors.ts';
import type { StateStore } from './state-store.ts';

/**
 * Opens where the state is kept, and makes it if it is not there: a file, which is SQLite's, for one machine; or
 * `postgresql://user@host/database`, for managers on several machines that stand by for each other.
 *
 * @param location - a path, or a URL as libpq knows it; PostgreSQL's password may be in PGPASSWORD or `~/.pgpass`, too
 * @throws StoreError `store-not-usable`, `store-too-new`
 */
export async function openStateStore(location: string): Promise<StateStore> {
  // Each is loaded when it is used: Node 22 warns of its SQLite, and many need no PostgreSQL.
  if (/^postgres(?:ql)?:\/\//.test(location)) {
    const { openPostgresStore } = await import('./postgres-store.ts');
    return await openPostgresStore(location);
  }
  if (/^[a-z][a-z\d+.-]*:\/\//i.test(location)) {
    // The location stays out of the message: it may hold a password.
    throw new StoreError(
      'store-not-usable',
      'the URL of the store is not of a PostgreSQL database; write postgresql://USER@HOST/DATABASE, or the path of a file',
    );
  }
  const { openSqliteStore } = await import('./sqlite-store.ts');
  return await openSqliteStore(location);
}
