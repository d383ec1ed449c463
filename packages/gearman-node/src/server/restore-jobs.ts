import type { Journal } from '../journal/journal.ts';
import type { ServerState } from './server-state.ts';

/** Queues the jobs that an earlier process left in the journal; one of the future waits for its time. */
export function restoreJobs(journal: Journal, { queue, timers }: ServerState): void {
  for (const { handle, due, ...submission } of journal.jobs) {
    const delay = due - Date.now();
    const job = queue.restore(handle, { ...submission, isBackground: true, isHeld: delay > 0 });
    if (delay > 0) timers.start(job, delay, () => queue.release(job));
  }
}
