import { once } from 'node:events';
import type { TestContext } from 'node:test';
import type { Worker } from 'node:worker_threads';

/** The threads that this process starts during a test. */
export interface StartedThreads {
  readonly all: readonly Worker[];
  /** Waits until each of them has ended. */
  ended(): Promise<void>;
}

/** Watches for threads. */
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
