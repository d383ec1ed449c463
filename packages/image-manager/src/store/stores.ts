import { access, constants, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { CheckResult } from '@nodepool-builder/image-builder';
import { attempt, unlessMissing } from '@nodepool-builder/image-builder/internal';
import { StoreError } from '../errors.ts';
import type { StateStore } from './state-store.ts';
import { checkVersion } from './tables.ts';

/** Location of a PostgreSQL store. */
const POSTGRES = /^postgres(?:ql)?:\/\//;

/**
 * Opens a store, and creates it if it does not exist: a SQLite file for one host, or `postgresql://user@host/database`
 * for managers on several hosts.
 *
 * @param location - a path, or a libpq URL; PostgreSQL's password may also come from PGPASSWORD or `~/.pgpass`
 * @throws StoreError `store-not-usable`, `store-too-new`
 */
export async function openStateStore(location: string): Promise<StateStore> {
  // Loaded on demand, because Node 22 prints a warning about its SQLite, and most sites do not use PostgreSQL.
  if (POSTGRES.test(location)) {
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

/** Subject of the results. */
const STORE = 'store of the manager';
const LEADER = 'leading manager';

/** Result of inspecting a store. */
interface Look {
  readonly location: string;
  /** Version of the tables; undefined if no manager has created them yet. */
  readonly version: number | undefined;
  /** Describes the manager that holds the leader lock; undefined if none does. */
  readonly leader: string | undefined;
}

/**
 * Checks a store without changing it: whether it can be used, the version of its tables, and whether a manager leads.
 */
export async function* diagnoseStore(location: string, signal: AbortSignal): AsyncGenerator<CheckResult> {
  const look = await attempt(STORE, signal, async () => {
    const found = await (POSTGRES.test(location) ? lookAtPostgres(location) : lookAtSqlite(location));
    if (found.version !== undefined) checkVersion(found.version, found.location);
    return found;
  });
  if (look.problem) {
    yield look.problem;
    return;
  }
  const { location: place, version, leader } = look.value;
  if (version === undefined) {
    yield { subject: STORE, status: 'ok', message: `${place} can be used; no manager has used it` };
    return;
  }
  yield { subject: STORE, status: 'ok', message: `${place} can be used; its version is ${version}` };
  if (leader !== undefined) {
    yield { subject: LEADER, status: 'ok', message: leader };
    return;
  }
  const remedy = 'start "nodepool-builder manage", or the daemon with --all-in-one';
  yield { subject: LEADER, status: 'warning', message: 'no manager runs with this store', remedy };
}

async function lookAtSqlite(path: string): Promise<Look> {
  const location = `"${path}"`;
  const { asStoreError, describeLeader } = await import('./sqlite-file.ts'); // imported on demand, as in openStateStore
  try {
    if ((await unlessMissing(stat(path))) === undefined) {
      // A manager creates the file and the last directory of its path.
      const parent = (await unlessMissing(stat(dirname(path)))) ? dirname(path) : dirname(dirname(path));
      await access(parent, constants.W_OK | constants.X_OK);
      return { location, version: undefined, leader: undefined };
    }
    await access(path, constants.R_OK | constants.W_OK);
    await access(dirname(path), constants.W_OK | constants.X_OK);
    const version = await readSqliteVersion(path);
    return { location, version, leader: await describeLeader(path) };
  } catch (error) {
    throw asStoreError(error, path);
  }
}

async function readSqliteVersion(path: string): Promise<number> {
  const { DatabaseSync } = await import('node:sqlite');
  // Without a write-ahead log, even a reader would create one, unless the file is opened as immutable.
  const hasLog = (await unlessMissing(stat(`${path}-wal`))) !== undefined;
  const database = new DatabaseSync(hasLog ? path : immutable(path), { readOnly: true });
  try {
    return Number(database.prepare('select schema_version as version from settings').get()?.version);
  } finally {
    database.close();
  }
}

function immutable(path: string): URL {
  const url = pathToFileURL(path);
  url.searchParams.set('immutable', '1');
  return url;
}

/** Timeout of a query, in milliseconds. */
const QUERY_TIMEOUT = 5000;

async function lookAtPostgres(url: string): Promise<Look> {
  // Imported on demand, because most sites do not use PostgreSQL.
  const [{ PostgresDatabase }, { parseAccess }] = await Promise.all([
    import('./postgres-store.ts'),
    import('./postgres-access.ts'),
  ]);
  const database = new PostgresDatabase(parseAccess(url), QUERY_TIMEOUT);
  const { location } = database;
  try {
    return await database.use(async (query) => {
      await query('begin read only');
      const [found] = await query(`
        select to_regclass('image_manager.settings') is not null as has_tables,
          has_database_privilege(current_database(), 'create') as may_create
      `);
      if (found?.has_tables !== true) {
        if (found?.may_create === true) return { location, version: undefined, leader: undefined };
        throw Object.assign(new Error('this user may not create the schema image_manager'), {
          code: '42501',
        });
      }
      const [settings] = await query('select schema_version as version from image_manager.settings');
      await query('commit');
      return { location, version: Number(settings?.version), leader: await database.describeLeader() };
    });
  } finally {
    await database.close();
  }
}
