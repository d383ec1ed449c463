import type { Logger } from '@nodepool-builder/image-builder';
import type { RetryTimes } from '../retry-times.ts';

/** What {@link Acts} tells and counts. */
export interface ActsOptions {
  readonly retries: RetryTimes;
  readonly logger: Logger;
  /** Milliseconds on a clock that is never set. */
  readonly elapsed: () => number;
  /** Called whenever an act has ended. */
  readonly ended: () => void;
}

/** The acts under way, one at a time for each build or upload. One that failed may be tried again after a pause. */
export class Acts {
  readonly #options: ActsOptions;
  readonly #controllers = new Map<string, AbortController>();
  readonly #endings = new Map<string, Promise<void>>();
  #isStopped = false;

  constructor(options: ActsOptions) {
    this.#options = options;
  }

  /** Ids of what somebody is at work on. */
  get ids(): ReadonlySet<string> {
    return new Set(this.#controllers.keys());
  }

  /** Does nothing once all are stopped. */
  begin(id: string, work: (signal: AbortSignal) => Promise<void>): void {
    if (this.#isStopped) return;
    const controller = new AbortController();
    this.#controllers.set(id, controller);
    this.#endings.set(id, this.#run(id, work, controller.signal));
  }

  abort(id: string, reason: Error): void {
    this.#controllers.get(id)?.abort(reason);
  }

  /** Stops all, for good, and waits for their end. */
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
