import { setTimeout as delay } from 'node:timers/promises';
import type { ImageDocument } from '../documents.ts';
import type { PendingRequest, Request } from '../records.ts';
import type { Database, Query, Row, Session } from './database.ts';
import { Leadership, type ManagerLeadership, type StoredState } from './leadership.ts';
import {
  BUILDS,
  checkSettings,
  PAUSES,
  parseRequest,
  type RecordTable,
  rowReader,
  type Settings,
  UPLOADS,
} from './tables.ts';

/** Milliseconds between two attempts of a standby manager to become the leader. */
const RETRY_INTERVAL = 250;

/** Maximum number of records of one query, because PostgreSQL's whole response is in memory. */
const PAGE = 1_000;

/** Settings of {@link StateStore.lead}. */
export interface LeadOptions {
  readonly signal?: AbortSignal;
  /** Called once if another manager is the leader. */
  readonly onStandby?: () => void;
}

/** Keeps the records of builds and uploads in an SQL database. */
export class StateStore implements AsyncDisposable {
  readonly #database: Database;
  readonly #closed = new AbortController();
  #owner: string;
  #leadership: Leadership | undefined;

  /** @param settings row of the table, not yet validated */
  constructor(database: Database, settings: unknown) {
    this.#database = database;
    this.#owner = checkSettings(settings, database.location).owner;
  }

  /**
   * Mark of this store's images: random characters in every id. The value was read when the store was opened, or when
   * this process became the leader. Only {@link Leadership.restore} changes it.
   */
  get owner(): string {
    return this.#owner;
  }

  /**
   * Waits until this process is the leader. Takes over within seconds when the leader dies.
   *
   * @throws the signal's reason; StoreError `store-not-usable`, after which it may be called again
   */
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

  /** Reads a consistent snapshot. Any process may call it at any time. */
  async read(): Promise<StoredState> {
    const { location, dialect } = this.#database;
    return await this.#use(async (query) => {
      const records = async <T extends { readonly id: string }>(
        table: RecordTable<T>,
      ): Promise<ReadonlyMap<string, T>> => {
        const all = new Map<string, T>();
        const page = `select * from ${dialect.prefix}${table.name} where id > $1 order by id limit ${PAGE}`;
        let [last, before] = ['', 0];
        do {
          before = all.size;
          for (const row of await query(page, last)) {
            const record = readRow(table, row);
            all.set(record.id, record);
            last = record.id;
          }
        } while (all.size - before === PAGE);
        return all;
      };
      await query(dialect.beginRead);
      const { owner, next_number: nextNumber } = await this.#settings(query, 'select * from');
      const readRow = rowReader(location);
      const builds = await records(BUILDS);
      const uploads = await records(UPLOADS);
      const pauses = await records(PAUSES);
      await query('commit');
      return { owner, nextNumber, builds, uploads, pauses };
    });
  }

  /**
   * Returns the attestations of a build, its converted files and its uploads, as builders returned them. Their
   * signatures are not verified.
   *
   * @param uploadId leaves out the attestations of other uploads
   */
  async attestations(imageId: string, uploadId?: string): Promise<readonly ImageDocument[]> {
    const isWanted = (one: ImageDocument): boolean =>
      uploadId === undefined || one.uploadId === undefined || one.uploadId === uploadId;
    return (await this.documents(imageId)).filter((one) => one.kind === 'attestation' && isWanted(one));
  }

  /** Returns the package list of a build, in gzip and base64; undefined if no builder returned one. */
  async packages(imageId: string): Promise<string | undefined> {
    return (await this.documents(imageId)).find(({ kind }) => kind === 'packages')?.text;
  }

  /** Returns the documents of one build. {@link read} omits them, because they need much memory. */
  async documents(imageId: string): Promise<readonly ImageDocument[]> {
    const sql = `select image_id, upload_id, kind, text from ${this.#database.dialect.prefix}documents
      where image_id = $1 order by coalesce(upload_id, ''), digest`;
    return await this.#use(async (query) => Array.from(await query(sql, imageId), toDocument));
  }

  /** Describes the manager that holds the leader lock; undefined if none does. Any process may call it at any time. */
  async describeLeader(): Promise<string | undefined> {
    this.#closed.signal.throwIfAborted();
    return await this.#database.describeLeader();
  }

  /** Returns the pending requests, oldest first. */
  async requests(): Promise<readonly PendingRequest[]> {
    const sql = `select number, request from ${this.#database.dialect.prefix}requests order by number`;
    return await this.#use(async (query) =>
      Array.from(await query(sql), ({ number, request }) => ({
        number: Number(number),
        request: parseRequest(String(request)),
      })),
    );
  }

  /** Adds a request for the leader, and returns its number. Any process may call it at any time. */
  async ask(request: Request): Promise<number> {
    const sql = `insert into ${this.#database.dialect.prefix}requests (request) values ($1) returning number`;
    return await this.#use(async (query) => {
      const [row] = await query(sql, JSON.stringify(request));
      return Number(row?.number);
    });
  }

  /** Releases leadership and closes all connections. */
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
    this.#leadership = new Leadership(this.#database, session, settings.term, (owner) => {
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

function toDocument(row: Row): ImageDocument {
  const { image_id: imageId, upload_id: uploadId, kind, text } = row;
  return {
    kind: kind as ImageDocument['kind'],
    imageId: String(imageId),
    ...(typeof uploadId === 'string' && { uploadId }),
    text: String(text),
  };
}

/** The part of a {@link StateStore} that a manager uses. */
export interface ManagerStore extends Pick<StateStore, 'owner' | 'read' | 'requests'> {
  lead(options?: LeadOptions): Promise<ManagerLeadership>;
}
