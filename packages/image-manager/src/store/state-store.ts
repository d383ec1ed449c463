import type { Build, ManagerState, PendingRequest, Request, Upload } from '../records.ts';

/** What is written in one go: all of it, or nothing. */
export interface StateChange {
  /** Put in place of what has the same id. */
  readonly builds?: readonly Build[];
  /** Put in place of what has the same id. */
  readonly uploads?: readonly Upload[];
  /** Ids of records that nobody needs any more. */
  readonly prunedBuilds?: readonly string[];
  /** Ids of records that nobody needs any more. */
  readonly prunedUploads?: readonly string[];
  /** Numbers of requests that this change answers. */
  readonly handledRequests?: readonly number[];
}

/** One manager's right to write, which no other has at the same time. */
export interface Leadership {
  /** Aborts when the right is lost: nothing may be begun any more. */
  readonly lost: AbortSignal;
  /**
   * Takes the next number of a sequence that never goes back, across all leaders.
   *
   * @throws StoreError `not-leader`
   */
  nextNumber(): Promise<number>;
  /**
   * Writes a change, durably: it outlives a crash of this machine.
   *
   * @throws StoreError `not-leader` if the right was lost before: nothing was written then
   */
  write(change: StateChange): Promise<void>;
  /** Gives the right back, so that another manager takes over at once. */
  release(): Promise<void>;
}

/** Where the state of builds and uploads is kept. Every implementation passes the same contract tests. */
export interface StateStore extends AsyncDisposable {
  /** Whose images are ours: drawn at random when the store was made, part of every id. */
  readonly owner: string;
  /**
   * Waits until this process may write. A leader that dies, however, is followed within seconds.
   *
   * @throws the signal's reason
   */
  lead(options?: { readonly signal?: AbortSignal }): Promise<Leadership>;
  /** Everything that is known; of any process, at any time. */
  read(): Promise<ManagerState>;
  /** Requests that wait for the leader, the oldest first. */
  requests(): Promise<readonly PendingRequest[]>;
  /** Leaves a request for the leader; of any process, at any time. Its number. */
  ask(request: Request): Promise<number>;
  close(): Promise<void>;
}
