import type { ImageProvider, Logger } from '@nodepool-builder/image-builder';
import { errorMessage } from '@nodepool-builder/image-builder/internal';
import type { ManagerConfiguration } from '../configuration.ts';
import type { BuilderFleet } from '../gearman/builder-fleet.ts';
import { cancellationOf } from '../gearman/cancellation.ts';
import { jobFailure } from '../gearman/run-job.ts';
import type { LeaderState } from '../leader-state.ts';
import type { ManagerEvent } from '../manager-event.ts';
import { pauseAfter } from '../planning/back-off.ts';
import { isLogged } from '../protocol/job-failure.ts';
import type { Build } from '../records.ts';
import type { ManagerLeadership } from '../store/leadership.ts';

/** Environment of a leading manager. */
export interface ManagerSite {
  /** Returns the current configuration. */
  readonly configuration: () => ManagerConfiguration;
  /** Returns the configured provider of that name. */
  readonly provider: (name: string) => ImageProvider | undefined;
  readonly logger: Logger;
  /** Wall clock for records: milliseconds since 1970. */
  readonly now: () => number;
  /** Monotonic clock for pauses and limits, in milliseconds. */
  readonly elapsed: () => number;
  /** Called at each event, while this manager is the leader. It must not throw. */
  readonly onEvent?: ((event: ManagerEvent) => void) | undefined;
}

/** State that tasks share. */
export interface TaskContext extends ManagerSite {
  readonly state: LeaderState;
  readonly leadership: Pick<ManagerLeadership, 'takeNumbers'>;
  readonly owner: string;
  readonly fleet: Pick<BuilderFleet, 'run' | 'status' | 'lastStatus'>;
  /** Returns whether no builder has offered this image for `absence-timeout`. */
  readonly isLongAbsent: (imageId: string) => boolean;
}

/** Fields of the record of a failed job. */
type FailedFields = Pick<Build, 'endedAt' | 'error' | 'cancelledBy'> & { readonly state: 'failed' };

/**
 * Records the failure of a job, then logs it unless a builder in this process has logged it.
 *
 * @param description `build debian-1`
 * @throws `error` if the job may still run
 */
export async function recordFailure(
  { now, logger }: Pick<TaskContext, 'now' | 'logger'>,
  description: string,
  error: unknown,
  signal: AbortSignal,
  record: (fields: FailedFields) => Promise<void>,
): Promise<void> {
  const reason = jobFailure(error, signal);
  if (reason === undefined) throw error;
  const cancellation = cancellationOf(error, signal);
  const verb = cancellation.cancelledBy === undefined ? 'failed:' : 'was';
  try {
    await record({ state: 'failed', endedAt: now(), error: reason, ...cancellation });
  } finally {
    if (!isLogged(error)) logger.warn(`${description} ${verb} ${reason}`);
  }
}

/** Times of the next attempts after failures. Each consecutive failure doubles the pause, up to a limit. */
export class RetryTimes {
  readonly #site: Pick<ManagerSite, 'configuration' | 'elapsed'>;
  readonly #failures = new Map<string, number>();
  readonly #retryAt = new Map<string, number>();

  constructor(site: Pick<ManagerSite, 'configuration' | 'elapsed'>) {
    this.#site = site;
  }

  /** Times of the next attempts on the monotonic clock, by id. */
  get all(): ReadonlyMap<string, number> {
    return this.#retryAt;
  }

  /** Schedules the next attempt. Returns the pause in seconds. */
  failed(id: string): number {
    const failures = (this.#failures.get(id) ?? 0) + 1;
    const pause = pauseAfter(failures, this.#site.configuration().timing);
    this.#failures.set(id, failures);
    this.#retryAt.set(id, this.#site.elapsed() + pause * 1000);
    return pause;
  }

  succeeded(id: string): void {
    this.#failures.delete(id);
    this.#retryAt.delete(id);
  }
}

export interface TasksOptions {
  readonly retries: RetryTimes;
  readonly logger: Logger;
  /** Called whenever a task has ended. */
  readonly ended: () => void;
  /** Called whenever a task has failed, unless it was aborted. */
  readonly retried?: (id: string) => void;
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

  /**
   * Starts a task; does nothing after {@link stop}.
   *
   * @param action verb and object, for the log: `delete upload`
   */
  start(id: string, action: string, work: (signal: AbortSignal) => Promise<void>): void {
    if (this.#isStopped) return;
    const controller = new AbortController();
    this.#controllers.set(id, controller);
    this.#endings.set(id, this.#run(id, action, work, controller.signal));
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

  async #run(
    id: string,
    action: string,
    work: (signal: AbortSignal) => Promise<void>,
    signal: AbortSignal,
  ): Promise<void> {
    const { retries, logger, ended, retried } = this.#options;
    try {
      await work(signal);
      retries.succeeded(id);
    } catch (error) {
      const pause = retries.failed(id);
      if (signal.aborted) return;
      logger.warn(`cannot ${action} ${id}: ${errorMessage(error)}; retrying in ${pause} s`);
      retried?.(id);
    } finally {
      this.#controllers.delete(id);
      this.#endings.delete(id);
      ended();
    }
  }
}
