import { StoreError } from '../errors.ts';
import { asStoreError } from './postgres-access.ts';
import { BUILDS, type RecordTable, toRow, UPLOADS } from './record-tables.ts';
import type { Leadership, StateChange, StoredState } from './state-store.ts';
import type { WatchedConnection } from './watched-connection.ts';

/** Number of records in one statement: while a statement runs, the connection does not answer heartbeats. */
const BATCH = 1000;

/** Settings of a {@link PostgresLeadership}. */
export interface PostgresLeadershipOptions {
  readonly location: string;
  /** Its session holds the lock. All writes use this session, so that they fail once the lock is lost. */
  readonly connection: WatchedConnection;
  readonly term: number;
  /** Called with the owner of a restored state. */
  readonly onRestored: (owner: string) => void;
}

/** The right to write to a PostgreSQL store. It ends with the connection. */
export class PostgresLeadership implements Leadership {
  readonly #options: PostgresLeadershipOptions;
  #released = false;

  constructor(options: PostgresLeadershipOptions) {
    this.#options = options;
  }

  get lost(): AbortSignal {
    return this.#options.connection.lost;
  }

  async takeNumbers(count: number): Promise<number> {
    return await this.#transaction(async () => {
      const rows = await this.#query(
        'update image_manager.settings set next_number = next_number + $1 returning next_number - $1 as number',
        [count],
      );
      return rows[0]?.number as number;
    });
  }

  async write(change: StateChange): Promise<void> {
    await this.#transaction(() => this.#apply(change));
  }

  async restore(state: StoredState): Promise<void> {
    await this.#transaction(async () => {
      const rows = await this.#query(
        `update image_manager.settings set owner = $1, next_number = $2 where next_number = 1
         and not exists (select 1 from image_manager.builds)
         and not exists (select 1 from image_manager.uploads) returning owner`,
        [state.owner, state.nextNumber],
      );
      if (rows.length === 0) throw StoreError.notEmpty(this.#options.location);
      await this.#apply({ builds: [...state.builds.values()], uploads: [...state.uploads.values()] });
    });
    this.#options.onRestored(state.owner);
  }

  async release(): Promise<void> {
    if (this.#released) return;
    this.#released = true;
    const { connection } = this.#options;
    // A lost connection has released the lock.
    await connection
      .exclusively(() => connection.query('select pg_advisory_unlock_all()'))
      .catch(() => undefined);
    await connection.close();
  }

  #transaction<T>(work: () => Promise<T>): Promise<T> {
    const { connection, location, term } = this.#options;
    if (this.#released) return Promise.reject(StoreError.notLeader(location));
    return connection.exclusively(async () => {
      if (this.lost.aborted) throw StoreError.notLeader(location, { cause: this.lost.reason });
      try {
        await this.#query('begin');
        // A connection pooler may let two managers share the session with the lock; the terms reveal that.
        const [settings] = await this.#query('select term from image_manager.settings for update');
        if (settings?.term !== term) throw StoreError.notLeader(location);
        const result = await work();
        await this.#query('commit');
        return result;
      } catch (error) {
        const reason = asStoreError(error, location);
        await this.#rollBack(reason);
        throw reason;
      }
    });
  }

  async #rollBack(reason: StoreError): Promise<void> {
    const { connection } = this.#options;
    if (reason.code === 'not-leader') connection.cut(reason);
    else await this.#query('rollback').catch((error) => connection.cut(error));
  }

  async #apply(change: StateChange): Promise<void> {
    await this.#put(BUILDS, change.builds ?? []);
    await this.#put(UPLOADS, change.uploads ?? []);
    await this.#remove('uploads where id', change.prunedUploads ?? []);
    await this.#remove('builds where id', change.prunedBuilds ?? []);
    await this.#remove('requests where number', change.handledRequests ?? []);
  }

  async #put<T extends { readonly id: string }>(table: RecordTable<T>, records: readonly T[]): Promise<void> {
    // One statement cannot insert the same row twice.
    const rows = [...new Map(records.map((record) => [record.id, toRow(table, record)])).values()];
    const names = table.columns.map(({ name }) => name);
    const sql = `insert into image_manager.${table.name} (${names.join(', ')})
      select ${names.join(', ')} from json_populate_recordset(null::image_manager.${table.name}, $1)
      on conflict (id) do update set ${names.map((name) => `${name} = excluded.${name}`).join(', ')}`;
    for (let start = 0; start < rows.length; start += BATCH) {
      await this.#query(sql, [JSON.stringify(rows.slice(start, start + BATCH))]);
    }
  }

  async #remove(what: string, keys: readonly (string | number)[]): Promise<void> {
    if (keys.length > 0) await this.#query(`delete from image_manager.${what} = any ($1)`, [keys]);
  }

  #query: WatchedConnection['query'] = (sql, values) => this.#options.connection.query(sql, values);
}
