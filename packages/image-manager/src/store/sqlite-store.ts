import { setTimeout as delay } from 'node:timers/promises';
import type { PendingRequest, Request } from '../records.ts';
import {
  BUILDS,
  type RecordTable,
  RowReader,
  readSettings,
  type Settings,
  UPLOADS,
} from './record-tables.ts';
import { parseRequest } from './requests.ts';
import { asStoreError, openDatabase, type SqliteDatabase, transaction, tryLock } from './sqlite-database.ts';
import { SqliteLeadership } from './sqlite-leadership.ts';
import type { Leadership, LeadOptions, StateStore, StoredState } from './state-store.ts';

/** Milliseconds between two attempts of a standby manager to become the leader. */
const RETRY_INTERVAL = 250;

/**
 * Opens a store in a local file, with Node's own SQLite. The leader locks `<file>-leader`; the kernel releases the lock
 * when the process ends, even by a crash.
 *
 * @throws StoreError `store-not-usable`, `store-too-new`
 */
export async function openSqliteStore(path: string): Promise<StateStore> {
  const file = await openDatabase(path);
  try {
    return new SqliteStore(file);
  } catch (error) {
    file.database.close();
    throw error;
  }
}

class SqliteStore implements StateStore {
  readonly #file: SqliteDatabase;
  readonly #closed = new AbortController();
  #owner: string;
  #leadership: SqliteLeadership | undefined;

  constructor(file: SqliteDatabase) {
    this.#file = file;
    this.#owner = this.#settings('select * from settings').owner;
  }

  get owner(): string {
    return this.#owner;
  }

  async lead({ signal, onStandby }: LeadOptions = {}): Promise<Leadership> {
    const stop = AbortSignal.any([this.#closed.signal, ...(signal === undefined ? [] : [signal])]);
    for (let attempt = 1; ; attempt += 1) {
      stop.throwIfAborted();
      const leadership = await this.#tryToLead();
      if (leadership !== undefined) return leadership;
      if (attempt === 1) onStandby?.();
      await delay(RETRY_INTERVAL, undefined, { signal: stop }).catch(() => stop.throwIfAborted());
    }
  }

  async read(): Promise<StoredState> {
    return this.#use((database) =>
      transaction(database, 'begin', () => {
        const { owner, next_number: nextNumber } = this.#settings('select * from settings');
        const reader = new RowReader(this.#file.location);
        return {
          owner,
          nextNumber,
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
          number: Number(number),
          request: parseRequest(String(request)),
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
      const settings = this.#use(() => this.#settings('update settings set term = term + 1 returning *'));
      this.#owner = settings.owner;
      const onRestored = (owner: string): void => {
        this.#owner = owner;
      };
      this.#leadership = new SqliteLeadership({
        path,
        database,
        lock,
        term: settings.term,
        onRestored,
      });
      return this.#leadership;
    } catch (error) {
      lock.close();
      throw error;
    }
  }

  #settings(sql: string): Settings {
    return readSettings(this.#file.database.prepare(sql).get(), this.#file.location);
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
