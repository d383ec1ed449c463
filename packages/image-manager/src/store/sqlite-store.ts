import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { Mutex } from '@nodepool-builder/image-builder/internal';
import type { StoreError } from '../errors.ts';
import type { Database, Query, Session } from './database.ts';
import {
  asStoreError,
  describeLeader,
  openDatabase,
  SQLITE,
  type SqliteFile,
  tryLock,
} from './sqlite-file.ts';
import { StateStore } from './state-store.ts';

/**
 * Opens a store in a local file, with Node's SQLite. The leader locks `<file>-leader`, and the kernel releases the lock
 * when the process ends, even by a crash.
 *
 * @throws StoreError `store-not-usable`, `store-too-new`
 */
export async function openSqliteStore(path: string): Promise<StateStore> {
  const file = await openDatabase(path);
  try {
    return new StateStore(new SqliteDatabase(file), file.database.prepare('select * from settings').get());
  } catch (error) {
    file.database.close();
    throw error;
  }
}

class SqliteDatabase implements Database {
  readonly dialect = SQLITE;
  readonly location: string;
  readonly #path: string;
  readonly #database: DatabaseSync;
  readonly #mutex = new Mutex();
  /** Prepared statements by their SQL. */
  readonly #statements = new Map<string, StatementSync>();

  constructor({ path, database }: SqliteFile) {
    this.location = `"${path}"`;
    this.#path = path;
    this.#database = database;
  }

  async use<T>(work: (query: Query) => Promise<T>): Promise<T> {
    return await this.#mutex.run(async () => {
      try {
        return await work(this.#query);
      } catch (error) {
        // A statement that failed while its rows were read would report the same error at its next use.
        this.#statements.clear();
        throw this.asStoreError(error);
      } finally {
        this.rollBack();
      }
    });
  }

  async openSession(): Promise<Session> {
    return new SqliteSession(this, `${this.#path}-leader`);
  }

  async describeLeader(): Promise<string | undefined> {
    return await describeLeader(this.#path);
  }

  rollBack(): void {
    if (this.#database.isOpen && this.#database.isTransaction) this.#database.exec('rollback');
  }

  asStoreError(error: unknown): StoreError {
    return asStoreError(error, this.#path);
  }

  async close(): Promise<void> {
    await this.#mutex.run(async () => this.#database.close());
  }

  /** Reads rows one by one, because all rows of a large store together take much memory. */
  readonly #query: Query = async (sql, ...values) => {
    // SQLite takes much longer to bind parameters by name.
    const statement = this.#statements.get(sql) ?? this.#database.prepare(sql.replaceAll(/\$\d+/g, '?'));
    this.#statements.set(sql, statement);
    return sql.startsWith('select') ? statement.iterate(...values) : statement.all(...values);
  };
}

/** The lock file. The session is lost only if that file is deleted. */
class SqliteSession implements Session {
  readonly #database: SqliteDatabase;
  readonly #path: string;
  readonly #lost = new AbortController();
  readonly lost: AbortSignal = this.#lost.signal;
  #lock: DatabaseSync | undefined;

  constructor(database: SqliteDatabase, path: string) {
    this.#database = database;
    this.#path = path;
  }

  use<T>(work: (query: Query) => Promise<T>): Promise<T> {
    return this.#database.use(work);
  }

  async tryLock(): Promise<boolean> {
    this.#lock = await tryLock(this.#path);
    return this.#lock !== undefined;
  }

  async rollBack(reason: StoreError): Promise<void> {
    this.#database.rollBack();
    if (reason.code !== 'not-leader') return;
    this.#unlock();
    this.#lost.abort(reason);
  }

  async close(): Promise<void> {
    await this.#database.use(async () => this.#unlock());
  }

  #unlock(): void {
    this.#lock?.close();
    this.#lock = undefined;
  }
}
