import { LongTimer } from '../long-timer.ts';
import type { ServerJob } from './queue-model.ts';
import type { ServerConnection } from './server-connection.ts';

/** The timers of jobs. Each job has at most one, for its start time or for its time limit. */
export class JobTimers {
  readonly #timers = new Map<ServerJob<ServerConnection>, LongTimer>();

  /** @param delay milliseconds, without a limit */
  start(job: ServerJob<ServerConnection>, delay: number, action: () => void): void {
    this.stop(job);
    const onTime = () => {
      this.#timers.delete(job);
      action();
    };
    this.#timers.set(job, new LongTimer(delay, onTime));
  }

  stop(job: ServerJob<ServerConnection>): void {
    this.#timers.get(job)?.stop();
    this.#timers.delete(job);
  }

  stopAll(): void {
    for (const job of this.#timers.keys()) this.stop(job);
  }
}
