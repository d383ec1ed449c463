import { Socket } from 'node:net';
import { Client } from 'pg';
import { asStoreError, type PostgresAccess } from './postgres-access.ts';

/** How long the server keeps a session that asks nothing, in milliseconds. Then its locks are free. */
const SERVER_PATIENCE = 3000;

/** How long this side waits for an answer, in milliseconds: it must give up before the server does. */
const CLIENT_PATIENCE = 2500;

/** How often the server is asked for a sign of life, in milliseconds. */
const HEARTBEAT = 1000;

/**
 * A process that was stopped keeps its connection, and its kernel answers for it: only the server can see that it asks
 * nothing. A statement, or an answer that nobody takes, must not keep the session alive either.
 */
const SESSION = `
  set idle_session_timeout = ${SERVER_PATIENCE};
  set idle_in_transaction_session_timeout = ${SERVER_PATIENCE};
  set statement_timeout = ${SERVER_PATIENCE};
  set tcp_user_timeout = ${SERVER_PATIENCE};
`;

/** What a query gives, a row each. */
export type Rows = readonly Readonly<Record<string, unknown>>[];

/**
 * A connection of which both ends know within seconds that it is gone: this end first, so that it claims nothing that
 * the server has given to another.
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

  /** Runs work of several queries that no other comes between. */
  exclusively<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#tail.then(work);
    this.#tail = done.catch(() => undefined);
    return done;
  }

  /** One statement, to be called within {@link exclusively}. */
  async query(sql: string, values: readonly unknown[] = []): Promise<Rows> {
    const { rows } = await this.#client.query<Record<string, unknown>>(sql, [...values]);
    this.#silence?.refresh();
    return rows;
  }

  /** Ends it at once: it cannot be relied on any more. */
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
        () => this.cut(new Error(`no answer for ${CLIENT_PATIENCE / 1000} s`)),
        CLIENT_PATIENCE,
      );
      await this.#client.query(SESSION);
    } catch (error) {
      this.cut(error);
      throw asStoreError(error, this.#location);
    }
    this.#heartbeat = setInterval(() => {
      // That it fails is told by the connection's end.
      this.exclusively(() => this.query('select 1')).catch(() => undefined);
    }, HEARTBEAT);
  }
}
