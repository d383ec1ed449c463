import type { Build, ManagerState, PendingRequest, Request, Upload } from '../records.ts';

/** What is written in one go: all of it, or nothing. */
export interface StateChange {
  /** Put in place of what has the same id. */
  readonly builds?: readonly Build[];
  /** Put in place of what has the same id. The build of each is in the store, or in this change. */
  readonly uploads?: readonly Upload[];
  /** Ids of records that nobody needs any more. A build goes at the earliest together with the last of its uploads. */
  readonly prunedBuilds?: readonly string[];
  /** Ids of records that nobody needs any more. */
  readonly prunedUploads?: readonly string[];
  /** Numbers of requests that this change answers. */
  readonly handledRequests?: readonly number[];
}

/** All of a store but the requests. */
export interface StoredState extends ManagerState {
  /** Whose images are ours. */
  readonly owner: string;
  /** The number that {@link Leadership.takeNumbers} gives next. */
  readonly nextNumber: number;
}

/** One manager's right to write, which no other has at the same time. */
export interface Leadership {
  /** Aborts when the right is lost: nothing may be begun any more. Its reason is a StoreError. */
  readonly lost: AbortSignal;
  /**
   * Takes the next so many numbers of a sequence that never goes back, across all leaders.
   *
   * @returns the first of them
   * @throws StoreError `not-leader`
   */
  takeNumbers(count: number): Promise<number>;
  /**
   * Writes a change, durably: it outlives a crash of this machine.
   *
   * @throws StoreError `not-leader` if the right was lost before: nothing was written then; `store-not-usable` if
   * writing failed: nothing was written unless {@link lost} has aborted, too, then the next leader reads which
   */
  write(change: StateChange): Promise<void>;
  /**
   * Puts a state in the place of an empty one.
   *
   * @throws StoreError `store-not-empty` if there is a record, or a number was ever taken: nothing was written then;
   * otherwise as {@link write}
   */
  restore(state: StoredState): Promise<void>;
  /** Gives the right back, so that another manager takes over at once. What is being written is written before. */
  release(): Promise<void>;
}

/** Where the state of builds and uploads is kept. Every implementation passes the same contract tests. */
export interface StateStore extends AsyncDisposable {
  /**
   * Whose images are ours: drawn at random when the store was made, part of every id. As it was when the store was
   * opened, or when this process began to lead: nothing but {@link Leadership.restore} changes it.
   */
  readonly owner: string;
  /**
   * Waits until this process may write. A leader that dies, however, is followed within seconds.
   *
   * @throws the signal's reason; StoreError `store-not-usable`, after which it may be called again
   */
  lead(options?: { readonly signal?: AbortSignal }): Promise<Leadership>;
  /** Everything that is known, as of one moment; of any process, at any time. */
  read(): Promise<StoredState>;
  /** Requests that wait for the leader, the oldest first. */
  requests(): Promise<readonly PendingRequest[]>;
  /** Leaves a request for the leader; of any process, at any time. Its number. */
  ask(request: Request): Promise<number>;
  /** Releases what this process leads, and ends its connections. */
  close(): Promise<void>;
}
