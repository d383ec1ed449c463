import { randomBytes } from 'node:crypto';
import { chmod, link, mkdir, open, realpath, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { errorMessage } from '@nodepool-builder/image-builder/internal';
import { StoreError } from '../errors.ts';
import { generateOwner } from '../ownership.ts';
import type { Dialect } from './database.ts';
import { checkVersion, SCHEMA_VERSION, tablesOf } from './tables.ts';

/** Timeout for another process that is writing, in milliseconds. */
const BUSY_TIMEOUT = 5000;

/** Mode of the files, so that only the manager's user can read the state or make requests. */
const MODE = 0o600;
const DIRECTORY_MODE = 0o700;

/** Remedies by SQLite's result codes. */
const REMEDIES: Readonly<Record<number, string>> = {
  1: 'it is a database of another program; name another file',
  3: 'grant this user read and write access to it and its directory',
  5: `another process has locked it for more than ${BUSY_TIMEOUT / 1000} s; stop that process`,
  8: 'grant this user read and write access to it and its directory',
  10: 'check the disk',
  11: 'the file is damaged; import an export into a new one',
  13: 'free space on the disk',
  14: 'name a file in a directory that this user may write to',
  26: 'it is not a SQLite database; name another file',
};

const SQLITE_BUSY = 5;

export const SQLITE: Dialect = {
  prefix: '',
  countingKey: 'integer primary key autoincrement',
  beginRead: 'begin',
  beginWrite: 'begin immediate',
  forUpdate: '',
  batch: 1, // one prepared statement for all records takes the least time
  keysFrom: () => 'select value from json_each($1)',
};

/** An open database. */
export interface SqliteFile {
  /** Canonical path, without symbolic links. */
  readonly path: string;
  readonly database: DatabaseSync;
}

/**
 * Opens the file of a store. Creates a missing file and a missing last directory of its path.
 *
 * @throws StoreError `store-not-usable`, `store-too-new`
 */
export async function openDatabase(name: string): Promise<SqliteFile> {
  try {
    const path = await realpath(name).catch(async () => {
      await create(name);
      return await realpath(name);
    });
    const database = new DatabaseSync(path);
    try {
      configure(database);
      const settings = database.prepare('select schema_version as version from settings').get();
      checkVersion(settings?.version as number, `"${path}"`);
      await tighten(path);
    } catch (error) {
      database.close();
      throw error;
    }
    return { path, database };
  } catch (error) {
    throw asStoreError(error, name);
  }
}

/** Takes a lock that the kernel releases when this process ends. Returns undefined if another process has it. */
export async function tryLock(path: string): Promise<DatabaseSync | undefined> {
  try {
    await touch(path);
    const lock = new DatabaseSync(path);
    try {
      lock.exec('pragma busy_timeout = 0; begin exclusive');
      return lock;
    } catch (error) {
      lock.close();
      if (resultCode(error) === SQLITE_BUSY) return undefined;
      throw error;
    }
  } catch (error) {
    throw asStoreError(error, path);
  }
}

/** Describes the manager that holds the leader lock of a store; undefined if none does. */
export async function describeLeader(path: string): Promise<string | undefined> {
  const lock = `${path}-leader`;
  if ((await stat(lock).catch(ignore('ENOENT'))) === undefined) return undefined;
  const database = new DatabaseSync(lock, { readOnly: true });
  try {
    database.prepare('select count(*) from sqlite_schema').get();
    return undefined;
  } catch (error) {
    // No other process can read a file with an exclusive lock.
    if (resultCode(error) === SQLITE_BUSY) return 'a manager of this host leads';
    throw error;
  } finally {
    database.close();
  }
}

/** Converts an error to a StoreError with a remedy. Returns a StoreError unchanged. */
export function asStoreError(error: unknown, path: string): StoreError {
  if (error instanceof StoreError) return error;
  const remedy = REMEDIES[resultCode(error) ?? -1] ?? 'check the path and the permissions of this user';
  const message = `the store "${path}" cannot be used: ${errorMessage(error)}; ${remedy}`;
  return new StoreError('store-not-usable', message, { cause: error });
}

/** Creates a database under another name and links it once it is complete, so that no process opens a partial one. */
async function create(path: string): Promise<void> {
  await mkdir(dirname(path), { mode: DIRECTORY_MODE }).catch(ignore('EEXIST'));
  const draft = `${path}.${randomBytes(4).toString('hex')}.new`;
  await touch(draft);
  try {
    const database = new DatabaseSync(draft);
    try {
      configure(database);
      database.exec(`pragma journal_mode = wal; ${tablesOf(SQLITE)}`);
      database.prepare('insert into settings values (1, ?, ?, 1, 0)').run(SCHEMA_VERSION, generateOwner());
    } finally {
      database.close();
    }
    // Fails if another process was faster, whose database is then used.
    await link(draft, path).catch(ignore('EEXIST'));
  } finally {
    await rm(draft, { force: true });
  }
}

function configure(database: DatabaseSync): void {
  database.exec(`pragma busy_timeout = ${BUSY_TIMEOUT}; pragma synchronous = full; pragma foreign_keys = on`);
}

/**
 * Creates a file with the right mode, which SQLite would not do. An existing file must not be opened, because closing
 * any handle of a file releases all locks that the process has on it.
 */
async function touch(path: string): Promise<void> {
  const handle = await open(path, 'wx', MODE).catch(ignore('EEXIST'));
  await handle?.close();
}

/** Removes permissions of other users. SQLite gives new files next to a database the database's mode. */
async function tighten(path: string): Promise<void> {
  for (const file of [path, `${path}-wal`, `${path}-shm`]) {
    const state = await stat(file).catch(ignore('ENOENT'));
    if (state?.isFile() && (state.mode & 0o7777 & ~MODE) !== 0)
      await chmod(file, MODE).catch(ignore('EPERM'));
  }
}

function ignore(code: string): (error: NodeJS.ErrnoException) => undefined {
  return (error) => {
    if (error.code !== code) throw error;
  };
}

/** Returns SQLite's primary result code. */
function resultCode(error: unknown): number | undefined {
  const { errcode } = error as { readonly errcode?: number };
  return errcode === undefined ? undefined : errcode & 0xff;
}
