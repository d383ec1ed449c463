import { documentDigest, type ImageDocument } from '../documents.ts';
import { StoreError } from '../errors.ts';
import type { Build, ManagerState, Pause, Upload } from '../records.ts';
import type { Database, Query, Session } from './database.ts';
import { BUILDS, PAUSES, type RecordTable, UPLOADS } from './tables.ts';

/** An atomic change of the records. */
export interface StateChange {
  /** Builds to insert, or to store instead of those with the same ids. */
  readonly builds?: readonly Build[];
  /** Uploads to insert or replace, likewise. Their builds are in the store or in this change. */
  readonly uploads?: readonly Upload[];
  /**
   * Documents to add, of builds and uploads that are in the store or in this change. A stored document does not
   * change.
   */
  readonly documents?: readonly ImageDocument[];
  /** Ids of builds to delete. All uploads of a build are deleted earlier or in the same change. */
  readonly prunedBuilds?: readonly string[];
  /** Ids of uploads to delete. */
  readonly prunedUploads?: readonly string[];
  /** Pauses to insert or replace, likewise. */
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

/** The exclusive right of one manager to write. It ends with its session. */
export class Leadership {
  /** Aborts when leadership is lost. Its reason is a StoreError. */
  readonly lost: AbortSignal;
  readonly #database: Database;
  readonly #session: Session;
  readonly #term: number;
  readonly #onRestored: (owner: string) => void;
  #isReleased = false;

  /** @param onRestored called with the owner of a restored state */
  constructor(database: Database, session: Session, term: number, onRestored: (owner: string) => void) {
    this.#database = database;
    this.#session = session;
    this.lost = session.lost;
    this.#term = term;
    this.#onRestored = onRestored;
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
   * Writes a change durably, so that it survives a crash of this host.
   *
   * @throws StoreError `not-leader` if leadership was lost earlier, and nothing was written
   * @throws StoreError `store-not-usable` if the write failed. Nothing was written, unless {@link lost} has also aborted,
   *   which leaves the outcome open.
   */
  async write(change: StateChange): Promise<void> {
    await this.#transaction((query) => this.#apply(query, change));
  }

  /**
   * Restores a state into an empty store.
   *
   * @param documents read one by one; an error of the iterable undoes everything
   * @throws StoreError `store-not-empty` if the store has a record, or a number was ever taken: nothing was written;
   * otherwise like {@link write}
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

  /** Finishes pending writes and releases leadership, so that another manager takes over at once. */
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

  /** Adds one document per statement, because a statement must be short. */
  async #add(query: Query, document: ImageDocument): Promise<void> {
    const { imageId, uploadId = null, kind, text } = document;
    await query(
      `insert into ${this.#database.dialect.prefix}documents (image_id, digest, upload_id, kind, text)
       values ($1, $2, $3, $4, $5) on conflict do nothing`,
      imageId,
      documentDigest(document),
      uploadId,
      kind,
      text,
    );
  }

  async #put<T extends Build | Upload | Pause>(
    query: Query,
    table: RecordTable<T>,
    records: readonly T[],
  ): Promise<void> {
    const { prefix, batch: size } = this.#database.dialect;
    // One statement cannot insert the same row twice.
    const unique = [...new Map(records.map((record) => [record.id, record])).values()];
    const names = table === UPLOADS ? ['id', 'image_id', 'record'] : ['id', 'record'];
    const insertOf = (count: number): string => {
      const rows = Array.from({ length: count }, (_row, index) =>
        names.map((_name, column) => `$${index * names.length + column + 1}`).join(', '),
      );
      return `insert into ${prefix}${table.name} (${names.join(', ')}) values (${rows.join('), (')})
        on conflict (id) do update set record = excluded.record`;
    };
    let sql = '';
    for (let start = 0; start < unique.length; start += size) {
      const batch = unique.slice(start, start + size);
      if (start === 0 || batch.length < size) sql = insertOf(batch.length);
      await query(sql, ...batch.flatMap(toRow));
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

/** Returns the values of a record's row. */
function toRow(record: Build | Upload | Pause): readonly string[] {
  const references = 'imageId' in record ? [record.imageId] : [];
  return [record.id, ...references, JSON.stringify(record)];
}

/** The part of a {@link Leadership} that a manager uses. */
export type ManagerLeadership = Pick<Leadership, 'lost' | 'takeNumbers' | 'write' | 'release'>;
