import { setTimeout as delay } from 'node:timers/promises';
import type { PendingRequest, Request } from '../records.ts';
import { BUILDS, type RecordTable, RowReader, UPLOADS } from './record-tables.ts';
import { asStoreError, openDatabase, type SqliteDatabase, transaction, tryLock } from './sqlite-database.ts';
import { SqliteLeadership } from './sqlite-leadership.ts';
import type { Leadership, StateStore, StoredState } from './state-store.ts';

/** How often a manager that waits tries to lead, in milliseconds. */
const RETRY_INTERVAL = 250;

/**
 * Opens a store in a file of this machine, with Node's own SQLite. Beside it is `<file>-leader`: who leads holds a
 * lock on that, which the kernel frees when the process ends, in whatever way.
 *
 * @throws StoreError `store-not-usable`, `store-too-new`
 */
export async function openSqliteStore(path: string): Promise<StateStore> {
  return new SqliteStore(await openDatabase(path));
}

class SqliteStore implements StateStore {
  readonly #file: SqliteDatabase;
  readonly #closed = new AbortController();
  #owner: string;
  #leadership: SqliteLeadership | undefined;

  constructor(file: SqliteDatabase) {
    this.#file = file;
    this.#owner = file.database.prepare('select owner from settings').get()?.owner as string;
  }

  get owner(): string {
    return this.#owner;
  }

  async lead({ signal }: { readonly signal?: AbortSignal } = {}): Promise<Leadership> {
    const stop = AbortSignal.any([this.#closed.signal, ...(signal === undefined ? [] : [signal])]);
    for (;;) {
      stop.throwIfAborted();
      const leadership = await this.#tryToLead();
      if (leadership !== undefined) return leadership;
      await delay(RETRY_INTERVAL, undefined, { signal: stop }).catch(() => stop.throwIfAborted());
    }
  }

  async read(): Promise<StoredState> {
    return this.#use((database) =>
      transaction(database, 'begin', () => {
        const settings = database.prepare('select owner, next_number from settings').get();
        const reader = new RowReader();
        return {
          owner: settings?.owner as string,
          nextNumber: settings?.next_number as number,
          builds: this.#records(reader, BUILDS),
          uploads: this.#records(reader, UPLOADS),
        };
      }),
    );
  }

  async requests(): Promise<readonly PendingRequest[]> {
    return this.#use((database) =>
      database
        .prepare('select number, request from requests order by number')
        .all()
        .map(({ number, request }) => ({
          number: number as number,
          request: JSON.parse(request as string) as Request,
        })),
    );
  }

  async ask(request: Request): Promise<number> {
    return this.#use((database) => {
      const statement = database.prepare('insert into requests (request) values (?)');
      return Number(statement.run(JSON.stringify(request)).lastInsertRowid);
    });
  }

  async close(): Promise<void> {
    if (this.#closed.signal.aborted) return;
    this.#closed.abort(asStoreError(new Error('it was closed'), this.#file.path));
    await this.#leadership?.release();
    this.#file.database.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #tryToLead(): Promise<SqliteLeadership | undefined> {
    const { path, database } = this.#file;
    const lock = await tryLock(`${path}-leader`);
    if (lock === undefined) return undefined;
    try {
      const settings = this.#use(() =>
        database.prepare('update settings set term = term + 1 returning term, owner').get(),
      );
      this.#owner = settings?.owner as string;
      const onRestored = (owner: string): void => {
        this.#owner = owner;
      };
      const term = settings?.term as number;
      this.#leadership = new SqliteLeadership({ path, database, lock, term, onRestored });
      return this.#leadership;
    } catch (error) {
      lock.close();
      throw error;
    }
  }

  #records<T extends { readonly id: string }>(
    reader: RowReader,
    table: RecordTable<T>,
  ): ReadonlyMap<string, T> {
    const records = new Map<string, T>();
    for (const row of this.#file.database.prepare(`select * from ${table.name}`).iterate()) {
      const record = reader.read(table, row);
      records.set(record.id, record);
    }
    return records;
  }

  #use<T>(work: (database: SqliteDatabase['database']) => T): T {
    this.#closed.signal.throwIfAborted();
    try {
      return work(this.#file.database);
    } catch (error) {
      throw asStoreError(error, this.#file.path);
    }
  }
}
