import type { Logger } from '../logger.ts';
import type { RunningJobs } from './running-jobs.ts';
import type { Slots } from './slots.ts';
import type { WorkerFunction } from './worker-function.ts';

/** State shared by a worker and its connections. */
export interface WorkerContext {
  /** The declared functions. */
  readonly functions: () => ReadonlyMap<string, WorkerFunction>;
  /** True to grab jobs together with their reducers. */
  readonly takesReducers: boolean;
  readonly slots: Slots;
  readonly jobs: RunningJobs;
  readonly clientId: string | undefined;
  readonly timeout: number;
  readonly onServerLost: 'finish' | 'abort';
  readonly maxPacketSize: number | undefined;
  readonly logger: Logger | undefined;
  readonly logsFailures: boolean;
  /** Called when the connection may grab again. */
  readonly dispatch: () => void;
}
