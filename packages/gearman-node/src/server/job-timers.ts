import type { QueuedJob } from './queued-job.ts';
import type { ServerConnection } from './server-connection.ts';

/** A timer of Node's can wait no longer; about 25 days. */
const MAX_DELAY = 2 ** 31 - 1;

/** The clock of a server: at most one thing is due for a job, its start or the end of its worker's time. */
export class JobTimers {
  readonly #timers = new Map<QueuedJob<ServerConnection>, NodeJS.Timeout>();

  /** @param delay milliseconds, however many */
  start(job: QueuedJob<ServerConnection>, delay: number, action: () => void): void {
    this.stop(job);
    const timer = setTimeout(
      () => {
        this.#timers.delete(job);
        if (delay > MAX_DELAY) this.start(job, delay - MAX_DELAY, action);
        else action();
      },
      Math.min(delay, MAX_DELAY),
    );
    this.#timers.set(job, timer);
  }

  stop(job: QueuedJob<ServerConnection>): void {
    clearTimeout(this.#timers.get(job));
    this.#timers.delete(job);
  }

  stopAll(): void {
    for (const job of this.#timers.keys()) this.stop(job);
  }
}
