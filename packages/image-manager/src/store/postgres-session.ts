import { Socket } from 'node:net';
import { Mutex } from '@nodepool-builder/image-builder/internal';
import { Client } from 'pg';
import type { StoreError } from '../errors.ts';
import type { Query, Row, Session } from './database.ts';
import { asStoreError, type PostgresAccess } from './postgres-access.ts';

/** First key of our advisory locks: "imag" in ASCII. */
export const LOCKS = 0x696d6167;
/** Second key of the leader lock. */
export const LEADER_LOCK = 1;

/** Query for the host of the manager that holds the lock. */
export const LEADER_QUERY: string = `
  select coalesce(host(activity.client_addr), 'the host of the database') as host
  from pg_locks left join pg_stat_activity as activity using (pid)
  where locktype = 'advisory' and granted and classid = ${LOCKS} and objid = ${LEADER_LOCK}
    and database = (select oid from pg_database where datname = current_database())
`;

/** Describes the manager in a row of {@link LEADER_QUERY}; undefined without a row. */
export function leaderIn(row: Row | undefined): string | undefined {
  return typeof row?.host === 'string' ? `a manager leads, on ${row.host}` : undefined;
}

/** Time after which the server ends an idle session and releases its locks, in milliseconds. */
const SERVER_TIMEOUT = 3000;

/** Timeout of a response, in milliseconds. It is shorter than the server's, so that this side gives up first. */
const CLIENT_TIMEOUT = 2500;

/** Heartbeat interval, in milliseconds. */
const HEARTBEAT = 1000;

/**
 * A process that is stopped by SIGSTOP keeps its connection, and its kernel still acknowledges packets. Only the server
 * can notice that it is idle. Neither a long statement nor an unread response may keep the session alive.
 */
const SETTINGS = `
  set idle_session_timeout = ${SERVER_TIMEOUT};
  set idle_in_transaction_session_timeout = ${SERVER_TIMEOUT};
  set statement_timeout = ${SERVER_TIMEOUT};
  set tcp_user_timeout = ${SERVER_TIMEOUT};
`;

/**
 * A separate connection, so that all writes fail once the lock is lost. Both ends notice its loss within seconds. The
 * client notices first, so that it never acts as the leader after the server has released the lock.
 */
export class PostgresSession implements Session {
  readonly #client: Client;
  readonly #socket: Socket;
  readonly #location: string;
  readonly #lost = new AbortController();
  readonly lost: AbortSignal = this.#lost.signal;
  readonly #mutex = new Mutex();
  #silence: NodeJS.Timeout | undefined;
  #heartbeat: NodeJS.Timeout | undefined;
  #closing = false;

  private constructor({ config, location }: PostgresAccess) {
    this.#socket = new Socket();
    this.#client = new Client({ ...config, stream: () => this.#socket });
    this.#location = location;
  }

  /** @throws StoreError `store-not-usable` */
  static async open(access: PostgresAccess): Promise<PostgresSession> {
    const session = new PostgresSession(access);
    await session.#open();
    return session;
  }

  use<T>(work: (query: Query) => Promise<T>): Promise<T> {
    return this.#mutex.run(() => work(this.#query));
  }

  async tryLock(): Promise<boolean> {
    return await this.use(async (query) => {
      const [attempt] = await query('select pg_try_advisory_lock($1, $2) as locked', LOCKS, LEADER_LOCK);
      return attempt?.locked === true;
    });
  }

  async rollBack(reason: StoreError): Promise<void> {
    if (reason.code === 'not-leader') this.#cut(reason);
    else await this.#query('rollback').catch((error: unknown) => this.#cut(error));
  }

  async close(): Promise<void> {
    // A lost connection has already released the lock.
    await this.use((query) => query('select pg_advisory_unlock_all()')).catch(() => undefined);
    this.#closing = true;
    clearInterval(this.#heartbeat);
    await this.#client.end();
    clearTimeout(this.#silence);
  }

  readonly #query: Query = async (sql, ...values) => {
    const { rows } = await this.#client.query<Record<string, unknown>>(sql, [...values]);
    this.#silence?.refresh();
    return rows;
  };

  async #open(): Promise<void> {
    this.#client.on('error', (error) => this.#cut(error));
    this.#client.on('end', () => this.#cut(new Error('the connection ended')));
    try {
      await this.#client.connect();
      this.#silence = setTimeout(
        () => this.#cut(new Error(`no response for ${CLIENT_TIMEOUT / 1000} s`)),
        CLIENT_TIMEOUT,
      );
      await this.#client.query(SETTINGS);
    } catch (error) {
      this.#cut(error);
      throw asStoreError(error, this.#location, 'store-unreachable');
    }
    this.#heartbeat = setInterval(() => {
      // A failure also ends the connection, which reports it.
      this.use((query) => query('select 1')).catch(() => undefined);
    }, HEARTBEAT);
  }

  /** Destroys the connection and reports its loss. */
  #cut(error: unknown): void {
    clearTimeout(this.#silence);
    clearInterval(this.#heartbeat);
    this.#socket.destroy();
    if (!this.#closing) this.#lost.abort(asStoreError(error, this.#location, 'store-unreachable'));
  }
}
