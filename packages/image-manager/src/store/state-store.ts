import { setTimeout as delay } from 'node:timers/promises';
import { digestOf, type ImageDocument } from '../documents.ts';
import { StoreError } from '../errors.ts';
import type { Build, ManagerState, Pause, PendingRequest, Request, Upload } from '../records.ts';
import type { Database, Query, Row, Session } from './database.ts';
import {
  BUILDS,
  checkSettings,
  PAUSES,
  parseRequest,
  type RecordTable,
  RowReader,
  type Settings,
  toRow,
  UPLOADS,
} from './tables.ts';

/** Milliseconds between two attempts of a standby manager to become the leader. */
const RETRY_INTERVAL = 250;

/** Records of one query: the whole answer of PostgreSQL is in memory. */
const PAGE = 1_000;

/** An atomic change of the records. */
export interface StateChange {
  /** Inserted, or replace the records with the same ids. */
  readonly builds?: readonly Build[];
  /** Inserted, or replace the records with the same ids. Their builds are in the store or in this change. */
  readonly uploads?: readonly Upload[];
  /** Added. Their builds and uploads are in the store or in this change. One that is stored already stays as it is. */
  readonly documents?: readonly ImageDocument[];
  /** Ids of builds to delete. All uploads of a build are deleted before, or in the same change. */
  readonly prunedBuilds?: readonly string[];
  /** Ids of uploads to delete. */
  readonly prunedUploads?: readonly string[];
  /** Inserted, or replace the records with the same ids. */
  readonly pauses?: readonly Pause[];
  /** Ids of pauses to delete. */
  readonly endedPauses?: readonly string[];
  /** Numbers of the requests that this change fulfils. */
  readonly handledRequests?: readonly number[];
}

/** Content of a store, apart from the requests. */
export interface StoredState extends ManagerState {
  /** Mark of this store's images. */
  readonly owner: string;
  /** The next number that {@link Leadership.takeNumbers} returns. */
  readonly nextNumber: number;
}

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
   * Mark of this store's images: a random text in every id. The value is that of when the store was opened, or when
   * this process became the leader; only {@link Leadership.restore} changes it.
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
            const record = reader.read(table, row);
            all.set(record.id, record);
            last = record.id;
          }
        } while (all.size - before === PAGE);
        return all;
      };
      await query(dialect.beginRead);
      const { owner, next_number: nextNumber } = await this.#settings(query, 'select * from');
      const reader = new RowReader(location);
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
    const documents = await this.documents(imageId, 'attestation');
    return uploadId === undefined
      ? documents
      : documents.filter((one) => one.uploadId === undefined || one.uploadId === uploadId);
  }

  /** Returns the list of packages of a build, in gzip and base64; undefined if no builder returned one. */
  async packages(imageId: string): Promise<string | undefined> {
    return (await this.documents(imageId, 'packages'))[0]?.text;
  }

  /** Returns the documents of one build. {@link read} leaves them out, because they need much memory. */
  async documents(imageId: string, kind?: ImageDocument['kind']): Promise<readonly ImageDocument[]> {
    const { prefix } = this.#database.dialect;
    const columns = `image_id, upload_id, kind, text from ${prefix}documents`;
    const order = `order by coalesce(upload_id, ''), digest`;
    return await this.#use(async (query) => {
      const rows =
        kind === undefined
          ? await query(`select ${columns} where image_id = $1 ${order}`, imageId)
          : await query(`select ${columns} where image_id = $1 and kind = $2 ${order}`, imageId, kind);
      return Array.from(rows, toDocument);
    });
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

  /**
   * Adds a request unless the same one is pending, whoever asks at the same time.
   *
   * @returns its number, and whether it is new
   */
  async askOnce(request: Request): Promise<{ readonly number: number; readonly isNew: boolean }> {
    const { prefix, beginWrite, forUpdate } = this.#database.dialect;
    const text = JSON.stringify(request);
    const insert = `insert into ${prefix}requests (request) select $1
      where not exists (select 1 from ${prefix}requests where request = $2) returning number`;
    return await this.#use(async (query) => {
      // In SQLite, one statement is atomic; a transaction could block another store in this process.
      if (forUpdate !== '') {
        await query(beginWrite);
        await this.#settings(query, 'select * from', forUpdate);
      }
      const [row] = await query(insert, text, text);
      const [pending] = await query(`select number from ${prefix}requests where request = $1`, text);
      if (forUpdate !== '') await query('commit');
      return { number: Number((row ?? pending)?.number), isNew: row !== undefined };
    });
  }

  /** Gives up leadership and closes all connections. */
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

/** The exclusive right of one manager to write. It ends with its session. */
export class Leadership {
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

  /** Aborts when leadership is lost. Its reason is a StoreError. */
  get lost(): AbortSignal {
    return this.#session.lost;
  }

  /**
   * Takes consecutive numbers from a sequence that no leader ever reuses.
   *
   * @returns the first number
   * @throws StoreError `not-leader`
   */
  async takeNumbers(count: number): Promise<number> {
    const { prefix } = this.#database.dialect;
    const sql = `update ${prefix}settings set next_number = next_number + $1 returning next_number`;
    return await this.#transaction(async (query) => {
      const [row] = await query(sql, count);
      return (row?.next_number as number) - count;
    });
  }

  /**
   * Writes a change durably: it survives a crash of this host.
   *
   * @throws StoreError `not-leader` if leadership was lost before: nothing was written; `store-not-usable` if the write
   * failed: nothing was written, unless {@link lost} has aborted as well, which leaves the outcome open
   */
  async write(change: StateChange): Promise<void> {
    await this.#transaction((query) => this.#apply(query, change));
  }

  /**
   * Restores a state into an empty store.
   *
   * @param documents read one by one; an error of the iterable undoes everything
   * @throws StoreError `store-not-empty` if the store has a record, or a number was ever taken: nothing was written;
   * otherwise as {@link write}
   */
  async restore(
    { owner, nextNumber, builds, uploads, pauses }: StoredState,
    documents: Iterable<ImageDocument> | AsyncIterable<ImageDocument> = [],
  ): Promise<void> {
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
      if ([...rows].length === 0) {
        const reason = 'the import would replace its records; import into a new store';
        throw new StoreError('store-not-empty', `${location} is not empty: ${reason}`);
      }
      await this.#apply(query, {
        builds: [...builds.values()],
        uploads: [...uploads.values()],
        pauses: [...pauses.values()],
      });
      for await (const document of documents) await this.#add(query, document);
    });
    this.#onRestored(owner);
  }

  /** Finishes pending writes and gives up leadership, so that another manager takes over at once. */
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
        // Two managers have the lock if a connection pooler shares its session, or the lock file was deleted.
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
    await this.#put(query, PAUSES, change.pauses ?? []);
    for (const document of change.documents ?? []) await this.#add(query, document);
    await this.#remove(query, 'uploads where id', 'text', change.prunedUploads ?? []);
    await this.#remove(query, 'builds where id', 'text', change.prunedBuilds ?? []);
    await this.#remove(query, 'pauses where id', 'text', change.endedPauses ?? []);
    await this.#remove(query, 'requests where number', 'bigint', change.handledRequests ?? []);
  }

  /** Adds one document by each statement, because a statement must be short. */
  async #add(query: Query, document: ImageDocument): Promise<void> {
    const { imageId, uploadId = null, kind, text } = document;
    await query(
      `insert into ${this.#database.dialect.prefix}documents (image_id, digest, upload_id, kind, text)
       values ($1, $2, $3, $4, $5) on conflict do nothing`,
      imageId,
      digestOf(document),
      uploadId,
      kind,
      text,
    );
  }

  async #put<T extends { readonly id: string }>(
    query: Query,
    table: RecordTable<T>,
    records: readonly T[],
  ): Promise<void> {
    const { prefix, batch: size } = this.#database.dialect;
    // One statement cannot insert the same row twice.
    const unique = [...new Map(records.map((record) => [record.id, record])).values()];
    const names = table.columns.map(({ name }) => name);
    const insertOf = (count: number): string => {
      const rows = Array.from({ length: count }, (_row, index) =>
        names.map((_name, column) => `$${index * names.length + column + 1}`).join(', '),
      );
      return `insert into ${prefix}${table.name} (${names.join(', ')}) values (${rows.join('), (')})
        on conflict (id) do update set ${names.map((name) => `${name} = excluded.${name}`).join(', ')}`;
    };
    let sql = '';
    for (let start = 0; start < unique.length; start += size) {
      const batch = unique.slice(start, start + size);
      if (start === 0 || batch.length < size) sql = insertOf(batch.length);
      await query(sql, ...batch.flatMap((record) => toRow(table, record)));
    }
  }

  async #remove(
    query: Query,
    condition: string,
    type: 'text' | 'bigint',
    keys: readonly (string | number)[],
  ): Promise<void> {
    const { prefix, keysFrom } = this.#database.dialect;
    if (keys.length === 0) return;
    await query(`delete from ${prefix}${condition} in (${keysFrom(type)})`, JSON.stringify(keys));
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

/** The part of a {@link Leadership} that a manager uses. */
export type ManagerLeadership = Pick<Leadership, 'lost' | 'takeNumbers' | 'write' | 'release'>;

/** The part of a {@link StateStore} that a manager uses. */
export interface ManagerStore extends Pick<StateStore, 'owner' | 'read' | 'requests'> {
  lead(options?: LeadOptions): Promise<ManagerLeadership>;
}
