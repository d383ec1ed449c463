import { Socket } from 'node:net';
import { Client } from 'pg';
import { asStoreError, type PostgresAccess } from './postgres-access.ts';

/** Time after which the server ends an idle session and releases its locks, in milliseconds. */
const SERVER_TIMEOUT = 3000;

/** Timeout for an answer, in milliseconds. It is shorter than the server's, so that this side gives up first. */
const CLIENT_TIMEOUT = 2500;

/** Heartbeat interval, in milliseconds. */
const HEARTBEAT = 1000;

/**
 * A process that is stopped by SIGSTOP keeps its connection, and its kernel still acknowledges packets. Only the server
 * can notice that it is idle. Neither a long statement nor an unread answer may keep the session alive.
 */
const SESSION = `
  set idle_session_timeout = ${SERVER_TIMEOUT};
  set idle_in_transaction_session_timeout = ${SERVER_TIMEOUT};
  set statement_timeout = ${SERVER_TIMEOUT};
  set tcp_user_timeout = ${SERVER_TIMEOUT};
`;

export type Rows = readonly Readonly<Record<string, unknown>>[];

/**
 * A connection whose loss both ends notice within seconds. The client notices first, so that it never acts as the
 * leader after the server has released the lock.
 */
export class WatchedConnection {
  readonly #client: Client;
  readonly #socket: Socket;
  readonly #location: string;
  readonly #lost = new AbortController();
  #silence: NodeJS.Timeout | undefined;
  #heartbeat: NodeJS.Timeout | undefined;
  #tail: Promise<unknown> = Promise.resolve();
  #closing = false;

  private constructor({ config, location }: PostgresAccess) {
    this.#socket = new Socket();
    this.#client = new Client({ ...config, stream: () => this.#socket });
    this.#location = location;
  }

  /** @throws StoreError `store-not-usable` */
  static async open(access: PostgresAccess): Promise<WatchedConnection> {
    const connection = new WatchedConnection(access);
    await connection.#open();
    return connection;
  }

  /** Aborts when the connection ends before it is closed. Its reason is a StoreError. */
  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  /** Runs several queries without others in between. */
  exclusively<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#tail.then(work);
    this.#tail = done.catch(() => undefined);
    return done;
  }

  /** Runs one statement; call it inside {@link exclusively}. */
  async query(sql: string, values: readonly unknown[] = []): Promise<Rows> {
    const { rows } = await this.#client.query<Record<string, unknown>>(sql, [...values]);
    this.#silence?.refresh();
    return rows;
  }

  /** Destroys the connection and reports its loss. */
  cut(error: unknown): void {
    clearTimeout(this.#silence);
    clearInterval(this.#heartbeat);
    this.#socket.destroy();
    if (!this.#closing) this.#lost.abort(asStoreError(error, this.#location));
  }

  async close(): Promise<void> {
    this.#closing = true;
    clearInterval(this.#heartbeat);
    await this.#client.end();
    clearTimeout(this.#silence);
  }

  async #open(): Promise<void> {
    this.#client.on('error', (error) => this.cut(error));
    this.#client.on('end', () => this.cut(new Error('the connection ended')));
    try {
      await this.#client.connect();
      this.#silence = setTimeout(
        () => this.cut(new Error(`no answer for ${CLIENT_TIMEOUT / 1000} s`)),
        CLIENT_TIMEOUT,
      );
      await this.#client.query(SESSION);
    } catch (error) {
      this.cut(error);
      throw asStoreError(error, this.#location);
    }
    this.#heartbeat = setInterval(() => {
      // A failure also ends the connection, which reports it.
      this.exclusively(() => this.query('select 1')).catch(() => undefined);
    }, HEARTBEAT);
  }
}
