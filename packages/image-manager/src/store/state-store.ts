import type { Build, ManagerState, PendingRequest, Request, Upload } from '../records.ts';

/** An atomic change of the records. */
export interface StateChange {
  /** Inserted, or replace the records with the same ids. */
  readonly builds?: readonly Build[];
  /** Inserted, or replace the records with the same ids. Their builds are in the store or in this change. */
  readonly uploads?: readonly Upload[];
  /** Ids of builds to delete. All uploads of a build are deleted before, or in the same change. */
  readonly prunedBuilds?: readonly string[];
  /** Ids of uploads to delete. */
  readonly prunedUploads?: readonly string[];
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

/** The exclusive right of one manager to write. */
export interface Leadership {
  /** Aborts when leadership is lost. Its reason is a StoreError. */
  readonly lost: AbortSignal;
  /**
   * Takes consecutive numbers from a sequence that no leader ever reuses.
   *
   * @returns the first number
   * @throws StoreError `not-leader`
   */
  takeNumbers(count: number): Promise<number>;
  /**
   * Writes a change durably: it survives a crash of this host.
   *
   * @throws StoreError `not-leader` if leadership was lost before: nothing was written; `store-not-usable` if the write
   * failed: nothing was written, unless {@link lost} has aborted as well, which leaves the outcome open
   */
  write(change: StateChange): Promise<void>;
  /**
   * Restores a state into an empty store.
   *
   * @throws StoreError `store-not-empty` if the store has a record, or a number was ever taken: nothing was written;
   * otherwise as {@link write}
   */
  restore(state: StoredState): Promise<void>;
  /** Finishes pending writes and gives up leadership, so that another manager takes over at once. */
  release(): Promise<void>;
}

/** Keeps the records of builds and uploads. Every implementation passes the same contract tests. */
export interface StateStore extends AsyncDisposable {
  /**
   * Mark of this store's images: a random text in every id. The value is that of when the store was opened, or when
   * this process became the leader; only {@link Leadership.restore} changes it.
   */
  readonly owner: string;
  /**
   * Waits until this process is the leader. Takes over within seconds when the leader dies.
   *
   * @throws the signal's reason; StoreError `store-not-usable`, after which it may be called again
   */
  lead(options?: LeadOptions): Promise<Leadership>;
  /** Reads a consistent snapshot. Any process may call it at any time. */
  read(): Promise<StoredState>;
  /** Returns the pending requests, oldest first. */
  requests(): Promise<readonly PendingRequest[]>;
  /** Adds a request for the leader, and returns its number. Any process may call it at any time. */
  ask(request: Request): Promise<number>;
  /** Gives up leadership and closes all connections. */
  close(): Promise<void>;
}
