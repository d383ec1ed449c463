import { once } from 'node:events';
import type { TestContext } from 'node:test';
import type { Worker } from 'node:worker_threads';

/** Threads that this process starts during a test. */
export interface StartedThreads {
  readonly all: readonly Worker[];
  /** Waits until all have ended. */
  ended(): Promise<void>;
}

/** Records the threads that start. */
export function startedThreads(t: TestContext): StartedThreads {
  const all: Worker[] = [];
  const exits: Promise<unknown>[] = [];
  const onWorker = (worker: Worker): void => {
    all.push(worker);
    exits.push(once(worker, 'exit'));
  };
  process.on('worker', onWorker);
  t.after(() => process.off('worker', onWorker));
  return { all, ended: async () => void (await Promise.all(exits)) };
}
