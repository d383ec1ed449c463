import type { PeerOptions } from '../connection/peer-options.ts';
import type { ServerAddress } from '../connection/server-address.ts';
import type { GearmanError } from '../errors.ts';
import type { Slots } from './slots.ts';
import type { WorkerFunction } from './worker-function.ts';
import type { AssignedJob } from './worker-job.ts';

/** Options of a {@link Worker}. */
export interface WorkerOptions extends PeerOptions {
  /** The functions are registered with all of these servers. At least one. */
  readonly servers: readonly ServerAddress[];
  /** Maximum number of concurrent jobs, over all servers. Default 1. */
  readonly concurrency?: number | undefined;
  /** True to log failed jobs. Set it to false if the handlers log failures themselves. Default true. */
  readonly logsFailures?: boolean | undefined;
  /**
   * Handling of a running job when the connection to its server is lost. The server may assign the job to another
   * worker. `finish` (default) leaves it to the handler, see {@link WorkerJob.connectionLost}; `abort` aborts the job's
   * signal. In both cases the result is discarded.
   */
  readonly onServerLost?: 'finish' | 'abort' | undefined;
  /**
   * True to grab jobs together with their reducers (GRAB_JOB_ALL). The Python server does not reply to that. Default
   * false.
   */
  readonly takesReducers?: boolean | undefined;
}

/** State shared by a worker and its connections. */
export interface WorkerContext extends Omit<WorkerOptions, 'servers' | 'concurrency' | 'reconnect'> {
  readonly timeout: number;
  /** The declared functions. */
  readonly functions: () => ReadonlyMap<string, WorkerFunction>;
  readonly slots: Slots;
  /** The running jobs of all connections, including lost ones. */
  readonly jobs: Set<AssignedJob>;
  /** Reason with which all current and later jobs are stopped. */
  stopReason: GearmanError | undefined;
  /** Called when the connection may grab again. */
  readonly dispatch: () => void;
}
