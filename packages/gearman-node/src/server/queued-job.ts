import type { JobPriority } from '../submit-packets.ts';
import type { FunctionQueue } from './function-queue.ts';
import type { Peer } from './peer.ts';

/** A job that a server has. */
export interface QueuedJob<Owner> {
  readonly handle: string;
  readonly queue: FunctionQueue<Owner>;
  /** As it was submitted, one character per byte. */
  readonly unique: string;
  /** What it coalesces by; empty for a job that does not. */
  readonly uniqueKey: string;
  readonly priority: JobPriority;
  /** What goes along to a worker that takes reducers; empty for none. */
  readonly reducer: string;
  readonly payload: Buffer;
  /** The job outlives those who submitted it. */
  isBackground: boolean;
  /** Those who wait for it; one that submitted it twice is here twice, as for gearmand. */
  clients: Peer<Owner>[];
  /** Who runs it; undefined while it waits. */
  worker: Peer<Owner> | undefined;
  /** How often it was given to a worker that was then lost. */
  retries: number;
  /** How far it has come, as its worker said last. */
  numerator: number;
  denominator: number;
}
