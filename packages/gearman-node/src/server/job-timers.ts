import { LongTimer } from '../long-timer.ts';
import type { QueuedJob } from './queue-model.ts';
import type { ServerConnection } from './server-connection.ts';

/** The clock of a server: at most one thing is due for a job, its start or the end of its worker's time. */
export class JobTimers {
  readonly #timers = new Map<QueuedJob<ServerConnection>, LongTimer>();

  /** @param delay milliseconds, however many */
  start(job: QueuedJob<ServerConnection>, delay: number, action: () => void): void {
    this.stop(job);
    const onTime = () => {
      this.#timers.delete(job);
      action();
    };
    this.#timers.set(job, new LongTimer(delay, onTime));
  }

  stop(job: QueuedJob<ServerConnection>): void {
    this.#timers.get(job)?.stop();
    this.#timers.delete(job);
  }

  stopAll(): void {
    for (const job of this.#timers.keys()) this.stop(job);
  }
}
