import type { Logger } from '@nodepool-builder/image-builder';
import type { RetryTimes } from '../retry-times.ts';

/** Settings of {@link Tasks}. */
export interface TasksOptions {
  readonly retries: RetryTimes;
  readonly logger: Logger;
  /** Monotonic clock, in milliseconds. */
  readonly elapsed: () => number;
  /** Called whenever a task has ended. */
  readonly ended: () => void;
}

/** The running tasks, at most one for each build or upload. A failed task may run again after a pause. */
export class Tasks {
  readonly #options: TasksOptions;
  readonly #controllers = new Map<string, AbortController>();
  readonly #endings = new Map<string, Promise<void>>();
  #isStopped = false;

  constructor(options: TasksOptions) {
    this.#options = options;
  }

  /** Ids of the builds and uploads with a running task. */
  get ids(): ReadonlySet<string> {
    return new Set(this.#controllers.keys());
  }

  /** Starts a task; does nothing after {@link stop}. */
  start(id: string, work: (signal: AbortSignal) => Promise<void>): void {
    if (this.#isStopped) return;
    const controller = new AbortController();
    this.#controllers.set(id, controller);
    this.#endings.set(id, this.#run(id, work, controller.signal));
  }

  abort(id: string, reason: Error): void {
    this.#controllers.get(id)?.abort(reason);
  }

  /** Stops all tasks for good and waits for them to end. */
  async stop(reason: unknown): Promise<void> {
    this.#isStopped = true;
    for (const controller of this.#controllers.values()) controller.abort(reason);
    await Promise.all(this.#endings.values());
  }

  async #run(id: string, work: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void> {
    const { retries, logger, elapsed, ended } = this.#options;
    try {
      await work(signal);
      retries.succeeded(id);
    } catch (error) {
      const pause = retries.failed(id, elapsed());
      const reason = error instanceof Error ? error.message : String(error);
      if (!signal.aborted) logger.warn(`${id}: ${reason}; trying again in ${pause} s`);
    } finally {
      this.#controllers.delete(id);
      this.#endings.delete(id);
      ended();
    }
  }
}
