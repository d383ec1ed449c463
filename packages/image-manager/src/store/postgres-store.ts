import { Pool, type PoolClient } from 'pg';
import type { StoreError } from '../errors.ts';
import { generateOwner } from '../ownership.ts';
import type { Database, Dialect, Query, Row, Session } from './database.ts';
import { asStoreError, type PostgresAccess, parseAccess } from './postgres-access.ts';
import { LEADER_QUERY, LOCKS, leaderIn, PostgresSession } from './postgres-session.ts';
import { StateStore } from './state-store.ts';
import { checkVersion, SCHEMA_VERSION, tablesOf } from './tables.ts';

/** Timeout for calls that do not need leadership, in milliseconds. */
const QUERY_TIMEOUT = 30_000;

/** Second key of the lock for creating the tables. */
const SCHEMA_LOCK = 2;

const DIALECT: Dialect = {
  prefix: 'image_manager.',
  countingKey: 'bigint generated always as identity primary key',
  beginRead: 'begin transaction isolation level repeatable read read only',
  beginWrite: 'begin',
  forUpdate: 'for update',
  batch: 100, // while a statement runs, the connection does not respond to heartbeats
  keysFrom: (type) => `select key::${type} from json_array_elements_text($1) as key`,
};

/**
 * Opens a store in the schema `image_manager` of a PostgreSQL database; creates the schema on first use.
 *
 * @param url - a libpq URL
 * @throws StoreError `store-not-usable`, `store-too-new`
 */
export async function openPostgresStore(url: string): Promise<StateStore> {
  const database = new PostgresDatabase(parseAccess(url));
  try {
    return new StateStore(database, await database.prepare());
  } catch (error) {
    await database.close();
    throw error;
  }
}

export class PostgresDatabase implements Database {
  readonly dialect = DIALECT;
  readonly location: string;
  readonly #access: PostgresAccess;
  readonly #pool: Pool;

  /** @param timeout of a query, in milliseconds */
  constructor(access: PostgresAccess, timeout = QUERY_TIMEOUT) {
    this.location = access.location;
    this.#access = access;
    this.#pool = new Pool({ ...access.config, max: 2, query_timeout: timeout });
    // The next call replaces an idle connection that broke.
    this.#pool.on('error', () => undefined);
    this.#pool.on('connect', (client) => client.on('error', () => undefined));
  }

  /** Creates the tables if they do not exist. Returns the row of settings. */
  async prepare(): Promise<Row | undefined> {
    return await this.use(async (query) => {
      await query('begin');
      await query('select pg_advisory_xact_lock($1, $2)', LOCKS, SCHEMA_LOCK);
      const [found] = await query(
        `select to_regnamespace('image_manager') as schema, to_regclass('image_manager.settings') as settings`,
      );
      if (found?.schema === null) await query('create schema image_manager');
      if (found?.settings === null) {
        await query(tablesOf(DIALECT));
        const insert = 'insert into image_manager.settings values (1, $1, $2, 1, 0)';
        await query(insert, SCHEMA_VERSION, generateOwner());
      }
      const [settings] = await query('select * from image_manager.settings');
      checkVersion(settings?.schema_version as number, this.location);
      await query('commit');
      return settings;
    });
  }

  async use<T>(work: (query: Query) => Promise<T>): Promise<T> {
    let client: PoolClient | undefined;
    try {
      const connected = await this.#pool.connect();
      client = connected;
      const result = await work(async (sql, ...values) => {
        const { rows } = await connected.query<Record<string, unknown>>(
          sql,
          values.length > 0 ? [...values] : undefined,
        );
        return rows;
      });
      client.release();
      return result;
    } catch (error) {
      // The connection's state is unknown, so it is not reused.
      client?.release(true);
      throw this.asStoreError(error);
    }
  }

  async openSession(): Promise<Session> {
    return await PostgresSession.open(this.#access);
  }

  async describeLeader(): Promise<string | undefined> {
    return await this.use(async (query) => {
      const [row] = await query(LEADER_QUERY);
      return leaderIn(row);
    });
  }

  asStoreError(error: unknown): StoreError {
    return asStoreError(error, this.location);
  }

  async close(): Promise<void> {
    await this.#pool.end();
  }
}
