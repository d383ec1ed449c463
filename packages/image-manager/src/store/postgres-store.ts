import { setTimeout as delay } from 'node:timers/promises';
import { Pool, type PoolClient } from 'pg';
import { generateOwner } from '../ownership.ts';
import type { PendingRequest, Request } from '../records.ts';
import { asStoreError, type PostgresAccess, parseAccess } from './postgres-access.ts';
import { PostgresLeadership } from './postgres-leadership.ts';
import { BUILDS, type RecordTable, RowReader, readSettings, UPLOADS } from './record-tables.ts';
import { parseRequest } from './requests.ts';
import { checkSchemaVersion, SCHEMA_VERSION, tablesOf, upgradeOf } from './schema.ts';
import type { Leadership, LeadOptions, StateStore, StoredState } from './state-store.ts';
import { WatchedConnection } from './watched-connection.ts';

/** Milliseconds between two attempts of a standby manager to become the leader. */
const RETRY_INTERVAL = 250;

/** Timeout for calls that do not need leadership, in milliseconds. */
const QUERY_TIMEOUT = 30_000;

/** First key of our advisory locks: "imag" in ASCII. */
const LOCKS = 0x696d6167;
const LEADER_LOCK = 1;
const SCHEMA_LOCK = 2;

/**
 * Opens a store in the schema `image_manager` of a PostgreSQL database; creates the schema on first use.
 *
 * @param url - a libpq URL
 * @throws StoreError `store-not-usable`, `store-too-new`
 */
export async function openPostgresStore(url: string): Promise<StateStore> {
  const store = new PostgresStore(parseAccess(url));
  try {
    await store.prepare();
  } catch (error) {
    await store.close();
    throw error;
  }
  return store;
}

class PostgresStore implements StateStore {
  readonly #access: PostgresAccess;
  readonly #pool: Pool;
  readonly #closed = new AbortController();
  #owner = '';
  #leadership: PostgresLeadership | undefined;

  constructor(access: PostgresAccess) {
    this.#access = access;
    this.#pool = new Pool({ ...access.config, max: 2, query_timeout: QUERY_TIMEOUT });
    // The next call replaces an idle connection that broke.
    this.#pool.on('error', () => undefined);
    this.#pool.on('connect', (client) => client.on('error', () => undefined));
  }

  get owner(): string {
    return this.#owner;
  }

  /** Creates or upgrades the tables if necessary. */
  async prepare(): Promise<void> {
    await this.#use(async (client) => {
      await client.query('begin');
      await client.query('select pg_advisory_xact_lock($1, $2)', [LOCKS, SCHEMA_LOCK]);
      const { rows } = await client.query(
        `select to_regnamespace('image_manager') as schema, to_regclass('image_manager.settings') as settings`,
      );
      if (rows[0].schema === null) await client.query('create schema image_manager');
      if (rows[0].settings === null) {
        const countingKey = 'bigint generated always as identity primary key';
        await client.query(tablesOf({ prefix: 'image_manager.', countingKey }));
        await client.query('insert into image_manager.settings values (1, $1, $2, 1, 0)', [
          SCHEMA_VERSION,
          generateOwner(),
        ]);
      }
      const settings = await client.query('select * from image_manager.settings');
      const { schema_version: version } = settings.rows[0];
      checkSchemaVersion(version, this.#access.location);
      await client.query(upgradeOf(version, 'image_manager.'));
      this.#owner = readSettings(settings.rows[0], this.#access.location).owner;
      await client.query('commit');
    });
  }

  async lead({ signal, onStandby }: LeadOptions = {}): Promise<Leadership> {
    const stop = AbortSignal.any([this.#closed.signal, ...(signal === undefined ? [] : [signal])]);
    stop.throwIfAborted();
    const connection = await WatchedConnection.open(this.#access);
    const end = AbortSignal.any([stop, connection.lost]);
    try {
      for (let attempt = 1; ; attempt += 1) {
        end.throwIfAborted();
        const leadership = await connection.exclusively(() => this.#tryToLead(connection));
        if (leadership !== undefined) return leadership;
        if (attempt === 1) onStandby?.();
        await delay(RETRY_INTERVAL, undefined, { signal: end }).catch(() => end.throwIfAborted());
      }
    } catch (error) {
      await connection.close();
      stop.throwIfAborted();
      throw asStoreError(error, this.#access.location);
    }
  }

  async read(): Promise<StoredState> {
    return await this.#use(async (client) => {
      await client.query('begin transaction isolation level repeatable read read only');
      const { location } = this.#access;
      const { rows } = await client.query('select * from image_manager.settings');
      const { owner, next_number: nextNumber } = readSettings(rows[0], location);
      const reader = new RowReader(location);
      const state = {
        owner,
        nextNumber,
        builds: await this.#records(client, reader, BUILDS),
        uploads: await this.#records(client, reader, UPLOADS),
      };
      await client.query('commit');
      return state;
    });
  }

  async requests(): Promise<readonly PendingRequest[]> {
    return await this.#use(async (client) => {
      const { rows } = await client.query(
        'select number, request from image_manager.requests order by number',
      );
      return rows.map(({ number, request }) => ({ number, request: parseRequest(request) }));
    });
  }

  async ask(request: Request): Promise<number> {
    return await this.#use(async (client) => {
      const sql = 'insert into image_manager.requests (request) values ($1) returning number';
      const { rows } = await client.query(sql, [JSON.stringify(request)]);
      return rows[0].number;
    });
  }

  async close(): Promise<void> {
    if (this.#closed.signal.aborted) return;
    this.#closed.abort(asStoreError(new Error('it was closed'), this.#access.location));
    await this.#leadership?.release();
    await this.#pool.end();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #tryToLead(connection: WatchedConnection): Promise<PostgresLeadership | undefined> {
    const sql = 'select pg_try_advisory_lock($1, $2) as locked';
    const [attempt] = await connection.query(sql, [LOCKS, LEADER_LOCK]);
    if (attempt?.locked !== true) return undefined;
    const { location } = this.#access;
    const [row] = await connection.query('update image_manager.settings set term = term + 1 returning *');
    const settings = readSettings(row, location);
    this.#owner = settings.owner;
    const onRestored = (owner: string): void => {
      this.#owner = owner;
    };
    this.#leadership = new PostgresLeadership({
      location,
      connection,
      term: settings.term,
      onRestored,
    });
    return this.#leadership;
  }

  async #records<T extends { readonly id: string }>(
    client: PoolClient,
    reader: RowReader,
    table: RecordTable<T>,
  ): Promise<ReadonlyMap<string, T>> {
    const { rows } = await client.query<Record<string, unknown>>(`select * from image_manager.${table.name}`);
    return new Map(
      rows.map((row) => {
        const record = reader.read(table, row);
        return [record.id, record];
      }),
    );
  }

  async #use<T>(work: (client: PoolClient) => Promise<T>): Promise<T> {
    this.#closed.signal.throwIfAborted();
    let client: PoolClient | undefined;
    try {
      client = await this.#pool.connect();
      const result = await work(client);
      client.release();
      return result;
    } catch (error) {
      // The connection's state is unknown, so it is not reused.
      client?.release(true);
      throw asStoreError(error, this.#access.location);
    }
  }
}
