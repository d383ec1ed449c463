import { randomBytes } from 'node:crypto';
import { chmod, link, mkdir, open, realpath, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { StoreError } from '../errors.ts';
import { drawOwner } from './draw-owner.ts';
import { checkSchemaVersion, SCHEMA_VERSION, tablesOf, upgradeOf } from './schema.ts';

/** How long a call waits for another process that is just writing, in milliseconds. */
const BUSY_TIMEOUT = 5000;

/** Nobody but the manager's user reads the state, or leaves requests. */
const MODE = 0o600;
const DIRECTORY_MODE = 0o700;

/** SQLite's result codes, and what to do about them. */
const REMEDIES: Readonly<Record<number, string>> = {
  1: 'it is a database of something else; name another file',
  3: 'give this user the right to read and write it and its directory',
  5: `another process keeps it locked for more than ${BUSY_TIMEOUT / 1000} s; end that one`,
  8: 'give this user the right to read and write it and its directory',
  10: 'look after its disk',
  11: 'the file is damaged; import an export into a new one',
  13: 'make room on its disk',
  14: 'it must be a file in a directory that this user may write in',
  26: 'it is no SQLite database; name another file',
};

const SQLITE_BUSY = 5;

/** An open store, and where it really is. */
export interface SqliteDatabase {
  /** Without symbolic links: two names of one store have the same. */
  readonly path: string;
  readonly database: DatabaseSync;
}

/**
 * Opens the file of a store; one that is not there is made, and the last directory of its path, too.
 *
 * @throws StoreError `store-not-usable`, `store-too-new`
 */
export async function openDatabase(name: string): Promise<SqliteDatabase> {
  try {
    const path = await realpath(name).catch(async () => {
      await make(name);
      return await realpath(name);
    });
    const database = new DatabaseSync(path);
    try {
      configure(database);
      const version = (): number =>
        database.prepare('select schema_version from settings').get()?.schema_version as number;
      checkSchemaVersion(version(), `"${path}"`);
      if (upgradeOf(version(), '') !== '')
        transaction(database, 'begin immediate', () => database.exec(upgradeOf(version(), '')));
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

/** Runs work in a transaction: all of it is on the disk when this returns, or none of it if it throws. */
export function transaction<T>(database: DatabaseSync, begin: string, work: () => T): T {
  database.exec(begin);
  try {
    const result = work();
    database.exec('commit');
    return result;
  } catch (error) {
    if (database.isTransaction) database.exec('rollback');
    throw error;
  }
}

/** Takes a lock that the kernel frees when this process ends, in whatever way; undefined if another has it. */
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

/** The error as callers know it, with a remedy; one that is a StoreError stays what it is. */
export function asStoreError(error: unknown, path: string): StoreError {
  if (error instanceof StoreError) return error;
  const remedy = REMEDIES[resultCode(error) ?? -1] ?? 'check the path and the rights of this user';
  const message = error instanceof Error ? error.message : String(error);
  return new StoreError('store-not-usable', `the store "${path}" cannot be used: ${message}; ${remedy}`, {
    cause: error,
  });
}

/** A database appears under its name when it is complete, so that nobody opens half of one. */
async function make(path: string): Promise<void> {
  await mkdir(dirname(path), { mode: DIRECTORY_MODE }).catch(ignore('EEXIST'));
  const draft = `${path}.${randomBytes(4).toString('hex')}.new`;
  await touch(draft);
  try {
    const database = new DatabaseSync(draft);
    try {
      configure(database);
      database.exec(
        `pragma journal_mode = wal; ${tablesOf({ prefix: '', countingKey: 'integer primary key autoincrement' })}`,
      );
      database.prepare('insert into settings values (1, ?, ?, 1, 0)').run(SCHEMA_VERSION, drawOwner());
    } finally {
      database.close();
    }
    // Fails if another process was faster: then its database is the one.
    await link(draft, path).catch(ignore('EEXIST'));
  } finally {
    await rm(draft, { force: true });
  }
}

function configure(database: DatabaseSync): void {
  database.exec(`pragma busy_timeout = ${BUSY_TIMEOUT}; pragma synchronous = full; pragma foreign_keys = on`);
}

/**
 * Makes a file with the right mode, which SQLite would not. One that is there must not be opened: the kernel drops
 * all locks of a process on a file when it closes any handle of it.
 */
async function touch(path: string): Promise<void> {
  const handle = await open(path, 'wx', MODE).catch(ignore('EEXIST'));
  await handle?.close();
}

/** SQLite gives the files beside a database the mode of the database. */
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

/** SQLite's primary result code. */
function resultCode(error: unknown): number | undefined {
  const { errcode } = error as { readonly errcode?: number };
  return errcode === undefined ? undefined : errcode & 0xff;
}
