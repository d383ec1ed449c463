import type { StoreError } from '../errors.ts';

export type Row = Readonly<Record<string, unknown>>;

/**
 * Runs one statement, in which `$1` stands for the first value. It contains each number once, in ascending order. Rows
 * must be read at once, and only once.
 */
export type Query = (sql: string, ...values: readonly (string | number | null)[]) => Promise<Iterable<Row>>;

/** SQL that differs between the two kinds of store. */
export interface Dialect {
  /** Prefix of each table's name. */
  readonly prefix: string;
  /** Type of an auto-increment key that never reuses a number. */
  readonly countingKey: string;
  /** Begins a transaction that reads a snapshot. */
  readonly beginRead: string;
  readonly beginWrite: string;
  /** Suffix of a `select` of a row that no other transaction may change in the meantime. */
  readonly forUpdate: string;
  /** Maximum number of records that one statement writes. */
  readonly batch: number;
  /** Query for keys from the JSON array `$1`. */
  readonly keysFrom: (type: 'text' | 'bigint') => string;
}

/** A database of one kind. */
export interface Database {
  /** Name for messages. */
  readonly location: string;
  readonly dialect: Dialect;
  /**
   * Runs queries without others of this connection in between. A transaction that is still open afterwards is rolled
   * back.
   */
  use<T>(work: (query: Query) => Promise<T>): Promise<T>;
  openSession(): Promise<Session>;
  /** Describes the manager that holds the leader lock; undefined if none does. */
  describeLeader(): Promise<string | undefined>;
  /** Converts an error to a StoreError with a remedy. Returns a StoreError unchanged. */
  asStoreError(error: unknown): StoreError;
  close(): Promise<void>;
}

/** A database session that can hold the leader lock. */
export interface Session {
  /** Aborts when the session or its lock is lost. Its reason is a StoreError. */
  readonly lost: AbortSignal;
  /** Runs queries in this session without others in between. */
  use<T>(work: (query: Query) => Promise<T>): Promise<T>;
  /** Returns false if another session has the lock. */
  tryLock(): Promise<boolean>;
  /** Rolls back an open transaction after an error. After `not-leader` the session is lost. */
  rollBack(reason: StoreError): Promise<void>;
  /** Waits for running queries and releases the lock. */
  close(): Promise<void>;
}
