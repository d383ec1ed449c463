import type { DatabaseSync } from 'node:sqlite';
import { StoreError } from '../errors.ts';
import { BUILDS, type RecordTable, toRow, UPLOADS } from './record-tables.ts';
import { asStoreError, transaction } from './sqlite-database.ts';
import type { Leadership, StateChange, StoredState } from './state-store.ts';

/** Settings of a {@link SqliteLeadership}. */
export interface SqliteLeadershipOptions {
  readonly path: string;
  readonly database: DatabaseSync;
  /** Held while this process is the leader. */
  readonly lock: DatabaseSync;
  readonly term: number;
  /** Called with the owner of a restored state. */
  readonly onRestored: (owner: string) => void;
}

/** The right to write to a SQLite store. It is lost only if somebody deletes the lock file. */
export class SqliteLeadership implements Leadership {
  readonly #options: SqliteLeadershipOptions;
  readonly #lost = new AbortController();

  constructor(options: SqliteLeadershipOptions) {
    this.#options = options;
  }

  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  async takeNumbers(count: number): Promise<number> {
    const sql =
      'update settings set next_number = next_number + :count returning next_number - :count as number';
    return this.#transaction((database) => database.prepare(sql).get({ count })?.number as number);
  }

  async write(change: StateChange): Promise<void> {
    this.#transaction((database) => apply(database, change));
  }

  async restore(state: StoredState): Promise<void> {
    this.#transaction((database) => {
      const { changes } = database
        .prepare(
          `update settings set owner = ?, next_number = ? where next_number = 1
           and not exists (select 1 from builds) and not exists (select 1 from uploads)`,
        )
        .run(state.owner, state.nextNumber);
      if (changes === 0) throw StoreError.notEmpty(`"${this.#options.path}"`);
      apply(database, { builds: [...state.builds.values()], uploads: [...state.uploads.values()] });
    });
    this.#options.onRestored(state.owner);
  }

  async release(): Promise<void> {
    const { lock } = this.#options;
    if (lock.isOpen) lock.close();
  }

  #transaction<T>(work: (database: DatabaseSync) => T): T {
    const { path, database, lock, term } = this.#options;
    if (!lock.isOpen) throw StoreError.notLeader(`"${path}"`);
    try {
      return transaction(database, 'begin immediate', () => {
        const settings = database.prepare('select term from settings').get();
        if (settings?.term !== term) throw this.#lose();
        return work(database);
      });
    } catch (error) {
      throw asStoreError(error, path);
    }
  }

  /** Another manager is the leader: somebody deleted the lock file. */
  #lose(): StoreError {
    const { path, lock } = this.#options;
    lock.close();
    const error = StoreError.notLeader(`"${path}"`);
    this.#lost.abort(error);
    return error;
  }
}

function apply(database: DatabaseSync, change: StateChange): void {
  put(database, BUILDS, change.builds ?? []);
  put(database, UPLOADS, change.uploads ?? []);
  remove(database, 'delete from uploads where id = ?', change.prunedUploads ?? []);
  remove(database, 'delete from builds where id = ?', change.prunedBuilds ?? []);
  remove(database, 'delete from requests where number = ?', change.handledRequests ?? []);
}

function put<T extends object>(database: DatabaseSync, table: RecordTable<T>, records: readonly T[]): void {
  if (records.length === 0) return;
  const names = table.columns.map(({ name }) => name);
  const statement = database.prepare(
    `insert into ${table.name} (${names.join(', ')}) values (${names.map((name) => `:${name}`).join(', ')})
     on conflict (id) do update set ${names.map((name) => `${name} = excluded.${name}`).join(', ')}`,
  );
  for (const record of records) statement.run(toRow(table, record));
}

function remove(database: DatabaseSync, sql: string, keys: readonly (string | number)[]): void {
  if (keys.length === 0) return;
  const statement = database.prepare(sql);
  for (const key of keys) statement.run(key);
}
