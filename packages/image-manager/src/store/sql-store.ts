import { setTimeout as delay } from 'node:timers/promises';
import { StoreError } from '../errors.ts';
import type { PendingRequest, Request } from '../records.ts';
import type { Leadership, LeadOptions, StateChange, StateStore, StoredState } from './state-store.ts';
import {
  BUILDS,
  checkSettings,
  type Dialect,
  parseRequest,
  type RecordTable,
  RowReader,
  type Settings,
  toRow,
  UPLOADS,
} from './tables.ts';

/** Milliseconds between two attempts of a standby manager to become the leader. */
const RETRY_INTERVAL = 250;

/** Number of records in one statement: while a statement runs, PostgreSQL's connection does not answer heartbeats. */
const BATCH = 1000;

export type Row = Readonly<Record<string, unknown>>;

/** Runs one statement, in which `$1` stands for the first value. Rows are read at once, and only once. */
export type Query = (sql: string, ...values: readonly (string | number)[]) => Promise<Iterable<Row>>;

/** SQL that differs between the two kinds of store. */
export interface StoreDialect extends Dialect {
  /** Begins a transaction that reads a snapshot. */
  readonly beginRead: string;
  readonly beginWrite: string;
  /** Follows a `select` of a row that no other transaction may change meanwhile. */
  readonly forUpdate: string;
  /** Query for rows of a table from the JSON array `$1`. */
  readonly rowsFrom: (table: string, names: readonly string[]) => string;
  /** Query for keys from the JSON array `$1`. */
  readonly keysFrom: (type: 'text' | 'bigint') => string;
}

/** A database of one kind. */
export interface Database {
  /** Name for messages. */
  readonly location: string;
  readonly dialect: StoreDialect;
  /** Runs queries without others of this connection in between. A transaction that is still open afterwards is undone. */
  use<T>(work: (query: Query) => Promise<T>): Promise<T>;
  openSession(): Promise<Session>;
  /** Converts an error to a StoreError with a remedy. A StoreError is returned as it is. */
  asStoreError(error: unknown): StoreError;
  close(): Promise<void>;
}

/** A session of the database that can hold the lock of the leader. */
export interface Session {
  /** Aborts when the session or its lock is lost. Its reason is a StoreError. */
  readonly lost: AbortSignal;
  /** Runs queries in this session without others in between. */
  use<T>(work: (query: Query) => Promise<T>): Promise<T>;
  /** Returns false if another session has the lock. */
  tryLock(): Promise<boolean>;
  /** Undoes an open transaction after an error. After `not-leader` the session is lost. */
  rollBack(reason: StoreError): Promise<void>;
  /** Waits for running queries and releases the lock. */
  close(): Promise<void>;
}

/** A store in an SQL database. */
export class SqlStore implements StateStore {
  readonly #database: Database;
  readonly #closed = new AbortController();
  #owner: string;
  #leadership: Leadership | undefined;

  /** @param settings row of the table, not yet validated */
  constructor(database: Database, settings: unknown) {
    this.#database = database;
    this.#owner = checkSettings(settings, database.location).owner;
  }

  get owner(): string {
    return this.#owner;
  }

  async lead({ signal, onStandby }: LeadOptions = {}): Promise<Leadership> {
    const stop = AbortSignal.any([this.#closed.signal, ...(signal === undefined ? [] : [signal])]);
    stop.throwIfAborted();
    const session = await this.#database.openSession();
    const end = AbortSignal.any([stop, session.lost]);
    try {
      for (let attempt = 1; ; attempt += 1) {
        end.throwIfAborted();
        if (await session.tryLock()) return await this.#beginTerm(session);
        if (attempt === 1) onStandby?.();
        await delay(RETRY_INTERVAL, undefined, { signal: end }).catch(() => end.throwIfAborted());
      }
    } catch (error) {
      await session.close();
      stop.throwIfAborted();
      throw this.#database.asStoreError(error);
    }
  }

  async read(): Promise<StoredState> {
    const { location, dialect } = this.#database;
    return await this.#use(async (query) => {
      const records = async <T extends { readonly id: string }>(
        table: RecordTable<T>,
      ): Promise<ReadonlyMap<string, T>> => {
        const all = new Map<string, T>();
        for (const row of await query(`select * from ${dialect.prefix}${table.name}`)) {
          const record = reader.read(table, row);
          all.set(record.id, record);
        }
        return all;
      };
      await query(dialect.beginRead);
      const { owner, next_number: nextNumber } = await this.#settings(query, 'select * from');
      const reader = new RowReader(location);
      const builds = await records(BUILDS);
      const uploads = await records(UPLOADS);
      await query('commit');
      return { owner, nextNumber, builds, uploads };
    });
  }

  async requests(): Promise<readonly PendingRequest[]> {
    const sql = `select number, request from ${this.#database.dialect.prefix}requests order by number`;
    return await this.#use(async (query) =>
      Array.from(await query(sql), ({ number, request }) => ({
        number: Number(number),
        request: parseRequest(String(request)),
      })),
    );
  }

  async ask(request: Request): Promise<number> {
    const sql = `insert into ${this.#database.dialect.prefix}requests (request) values ($1) returning number`;
    return await this.#use(async (query) => {
      const [row] = await query(sql, JSON.stringify(request));
      return Number(row?.number);
    });
  }

  async close(): Promise<void> {
    if (this.#closed.signal.aborted) return;
    this.#closed.abort(this.#database.asStoreError(new Error('it was closed')));
    await this.#leadership?.release();
    await this.#database.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #beginTerm(session: Session): Promise<Leadership> {
    const settings = await session.use((query) =>
      this.#settings(query, 'update', 'set term = term + 1 returning *'),
    );
    this.#owner = settings.owner;
    this.#leadership = new SqlLeadership(this.#database, session, settings.term, (owner) => {
      this.#owner = owner;
    });
    return this.#leadership;
  }

  async #settings(query: Query, begin: string, end = ''): Promise<Settings> {
    const { dialect, location } = this.#database;
    const [row] = await query(`${begin} ${dialect.prefix}settings ${end}`);
    return checkSettings(row, location);
  }

  async #use<T>(work: (query: Query) => Promise<T>): Promise<T> {
    this.#closed.signal.throwIfAborted();
    return await this.#database.use(work);
  }
}

/** The right to write. It ends with its session. */
class SqlLeadership implements Leadership {
  readonly #database: Database;
  readonly #session: Session;
  readonly #term: number;
  readonly #onRestored: (owner: string) => void;
  #isReleased = false;

  /** @param onRestored called with the owner of a restored state */
  constructor(database: Database, session: Session, term: number, onRestored: (owner: string) => void) {
    this.#database = database;
    this.#session = session;
    this.#term = term;
    this.#onRestored = onRestored;
  }

  get lost(): AbortSignal {
    return this.#session.lost;
  }

  async takeNumbers(count: number): Promise<number> {
    const { prefix } = this.#database.dialect;
    const sql = `update ${prefix}settings set next_number = next_number + $1 returning next_number - $1 as number`;
    return await this.#transaction(async (query) => {
      const [row] = await query(sql, count);
      return row?.number as number;
    });
  }

  async write(change: StateChange): Promise<void> {
    await this.#transaction((query) => this.#apply(query, change));
  }

  async restore({ owner, nextNumber, builds, uploads }: StoredState): Promise<void> {
    const { location, dialect } = this.#database;
    const { prefix } = dialect;
    await this.#transaction(async (query) => {
      const rows = await query(
        `update ${prefix}settings set owner = $1, next_number = $2 where next_number = 1
         and not exists (select 1 from ${prefix}builds)
         and not exists (select 1 from ${prefix}uploads) returning owner`,
        owner,
        nextNumber,
      );
      if ([...rows].length === 0) throw StoreError.notEmpty(location);
      await this.#apply(query, { builds: [...builds.values()], uploads: [...uploads.values()] });
    });
    this.#onRestored(owner);
  }

  async release(): Promise<void> {
    if (this.#isReleased) return;
    this.#isReleased = true;
    await this.#session.close();
  }

  async #transaction<T>(work: (query: Query) => Promise<T>): Promise<T> {
    const { location, dialect } = this.#database;
    if (this.#isReleased) throw StoreError.notLeader(location);
    return await this.#session.use(async (query) => {
      if (this.lost.aborted) throw StoreError.notLeader(location, { cause: this.lost.reason });
      try {
        await query(dialect.beginWrite);
        // Two managers have the lock if a connection pooler shares its session, or somebody deleted the lock file.
        const [settings] = await query(`select term from ${dialect.prefix}settings ${dialect.forUpdate}`);
        if (settings?.term !== this.#term) throw StoreError.notLeader(location);
        const result = await work(query);
        await query('commit');
        return result;
      } catch (error) {
        const reason = this.#database.asStoreError(error);
        await this.#session.rollBack(reason);
        throw reason;
      }
    });
  }

  async #apply(query: Query, change: StateChange): Promise<void> {
    await this.#put(query, BUILDS, change.builds ?? []);
    await this.#put(query, UPLOADS, change.uploads ?? []);
    await this.#remove(query, 'uploads where id', 'text', change.prunedUploads ?? []);
    await this.#remove(query, 'builds where id', 'text', change.prunedBuilds ?? []);
    await this.#remove(query, 'requests where number', 'bigint', change.handledRequests ?? []);
  }

  async #put<T extends { readonly id: string }>(
    query: Query,
    table: RecordTable<T>,
    records: readonly T[],
  ): Promise<void> {
    const { prefix, rowsFrom } = this.#database.dialect;
    // One statement cannot insert the same row twice.
    const rows = [...new Map(records.map((record) => [record.id, toRow(table, record)])).values()];
    const names = table.columns.map(({ name }) => name);
    const sql = `insert into ${prefix}${table.name} (${names.join(', ')}) ${rowsFrom(table.name, names)}
      on conflict (id) do update set ${names.map((name) => `${name} = excluded.${name}`).join(', ')}`;
    for (let start = 0; start < rows.length; start += BATCH) {
      await query(sql, JSON.stringify(rows.slice(start, start + BATCH)));
    }
  }

  async #remove(
    query: Query,
    what: string,
    type: 'text' | 'bigint',
    keys: readonly (string | number)[],
  ): Promise<void> {
    const { prefix, keysFrom } = this.#database.dialect;
    if (keys.length === 0) return;
    await query(`delete from ${prefix}${what} in (${keysFrom(type)})`, JSON.stringify(keys));
  }
}
