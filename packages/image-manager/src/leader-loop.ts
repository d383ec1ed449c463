import { setTimeout as delay } from 'node:timers/promises';
import type { ManagerConfiguration } from './configuration.ts';
import { absencesIn, type BuilderFleet, offersTheSame } from './gearman/builder-fleet.ts';
import { ImageGoneError } from './gearman/run-job.ts';
import { LeaderState } from './leader-state.ts';
import { stepOf } from './manager-event.ts';
import { OrphanCollector } from './orphans/orphan-collector.ts';
import { buildsToAdopt, correctFutureDates, uselessPauses } from './planning/corrections.ts';
import type { Observation, OfferedFunctions } from './planning/pass.ts';
import { plan } from './planning/plan.ts';
import type { ManagerState } from './records.ts';
import { handleRequests } from './request-handler.ts';
import type { ManagerLeadership } from './store/leadership.ts';
import type { ManagerStore } from './store/state-store.ts';
import { compareCopy } from './tasks/build.ts';
import { startSteps } from './tasks/start-steps.ts';
import { type ManagerSite, RetryTimes, type TaskContext, Tasks } from './tasks/tasks.ts';

export interface LeaderLoopOptions extends ManagerSite {
  readonly store: ManagerStore;
  readonly leadership: ManagerLeadership;
  readonly fleet: BuilderFleet;
  /** Milliseconds between two polls of job servers and requests. */
  readonly pollInterval: number;
  readonly isReloading: (() => Promise<boolean>) | undefined;
  readonly onRecords: ((state: ManagerState | undefined) => void) | undefined;
}

/**
 * Idle time after a planning pass, as a multiple of its duration, so that planning takes at most a fifth of the time.
 */
const REST = 4;

/** Maximum wait for a changed configuration, and the pause between two checks, in milliseconds. */
const MAX_SETTLE_TIME = 10_000;
const SETTLE_PAUSE = 100;

/** Maximum time between two planning passes, in milliseconds, in case no event reports a change. */
const MAX_PAUSE = 60_000;

/**
 * The work of the leader: polls the builders, plans, and starts each step as a task. The end of a task triggers the
 * next planning pass. Each step is on record before it starts.
 */
export class LeaderLoop {
  readonly #options: LeaderLoopOptions;
  readonly #state: LeaderState;
  readonly #context: TaskContext;
  readonly #tasks: Tasks;
  readonly #retries: RetryTimes;
  /** Times of the next comparisons of an image's copies. */
  readonly #comparisons: RetryTimes;
  readonly #orphans: OrphanCollector;
  /** Numbers of the requests whose builds have not started, by disk image. */
  #buildRequests: ReadonlyMap<string, readonly number[]> = new Map();
  /** Start of each absence from all builders, on the monotonic clock, by image-id. */
  #absentSince: ReadonlyMap<string, number> = new Map();
  /** Configuration of the last plan. */
  #planned: ManagerConfiguration | undefined;
  /** Functions that builders offered at the last plan. */
  #plannedFor: OfferedFunctions | undefined;
  /** Time of the next planning pass on the monotonic clock. */
  #planDue = -Infinity;
  /** Idle time in milliseconds. */
  #rest = 0;
  #wake: (() => void) | undefined;

  private constructor(options: LeaderLoopOptions, state: LeaderState) {
    const { store, logger, onEvent } = options;
    this.#options = options;
    this.#state = state;
    this.#retries = new RetryTimes(options);
    this.#comparisons = new RetryTimes(options);
    this.#tasks = new Tasks({
      retries: this.#retries,
      logger,
      ended: () => this.#replan(),
      retried: (id) => onEvent?.({ kind: 'retry', step: stepOf(id, state) }),
    });
    const isLongAbsent = (imageId: string): boolean => this.#isLongAbsent(imageId);
    this.#context = { ...options, state, owner: store.owner, isLongAbsent };
    this.#orphans = new OrphanCollector(this.#context);
  }

  /** Runs until the signal aborts or the leadership is lost. Running tasks stay on record as they are. */
  static async run(options: LeaderLoopOptions, signal: AbortSignal): Promise<void> {
    const { store, leadership, onEvent, onRecords } = options;
    const state = new LeaderState(await store.read(), leadership, onEvent);
    const loop = new LeaderLoop(options, state);
    onRecords?.(state);
    try {
      await loop.#run(AbortSignal.any([signal, leadership.lost]));
    } finally {
      onRecords?.(undefined);
    }
  }

  async #run(signal: AbortSignal): Promise<void> {
    const stop = (): void => {
      void this.#tasks.stop(signal.reason);
      this.#wake?.();
    };
    signal.addEventListener('abort', stop);
    try {
      while (!signal.aborted) {
        await this.#pass(signal, await this.#settle(signal));
        await this.#pause(signal);
      }
    } finally {
      signal.removeEventListener('abort', stop);
      await Promise.all([this.#tasks.stop(signal.reason), this.#orphans.idle()]);
    }
  }

  /** Waits until the last written configuration is loaded. Returns false if it keeps changing. */
  async #settle(signal: AbortSignal): Promise<boolean> {
    const end = performance.now() + MAX_SETTLE_TIME;
    while (await this.#isReloading()) {
      if (signal.aborted || performance.now() > end) return false;
      await delay(SETTLE_PAUSE, undefined, { signal }).catch(() => {});
    }
    return true;
  }

  async #isReloading(): Promise<boolean> {
    return (await this.#options.isReloading?.()) === true;
  }

  async #pass(signal: AbortSignal, isSettled: boolean): Promise<void> {
    const { fleet, now, elapsed } = this.#options;
    const configuration = this.#options.configuration();
    if (configuration !== this.#planned) this.#buildRequests = new Map();
    const status = await fleet.status();
    this.#absentSince = absencesIn(status, this.#imagesOnRecord(), this.#absentSince, elapsed());
    await this.#readRequests(isSettled);
    this.#failUploadsOfAbsentImages();
    this.#compareCopies();
    this.#orphans.scanWhenDue(signal, () => this.#replan());
    const hasChanged =
      configuration !== this.#planned ||
      this.#plannedFor === undefined ||
      !offersTheSame(this.#plannedFor, status.offered);
    if (signal.aborted || (!hasChanged && elapsed() < this.#planDue)) return;
    await this.#correctRecords(configuration);
    const observation = this.#observation();
    const begun = performance.now();
    const { steps, nextAt = Infinity } = plan(configuration, this.#state, observation);
    this.#rest = REST * (performance.now() - begun);
    this.#planned = configuration;
    this.#plannedFor = observation.offered;
    this.#planDue = elapsed() + Math.min(nextAt - now(), MAX_PAUSE);
    await startSteps(this.#context, this.#tasks, steps, this.#buildRequests);
  }

  /**
   * Records the builds of Zuul that builders have imported, corrects future dates from a fast clock, and removes
   * unpause records that the configuration no longer needs.
   */
  async #correctRecords(configuration: ManagerConfiguration): Promise<void> {
    const { fleet, now, logger } = this.#options;
    const { offered } = fleet.lastStatus;
    const adopted = buildsToAdopt(configuration, this.#state.builds, offered.uploads, now());
    const { builds, uploads } = correctFutureDates(this.#state, now());
    const future = [...builds, ...uploads];
    const endedPauses = uselessPauses(configuration, this.#state);
    if (adopted.length + future.length + endedPauses.length === 0) return;
    await this.#state.change({ builds: [...adopted, ...builds], uploads, endedPauses });
    for (const { id } of adopted) logger.info(`build ${id}: Zuul built it, and a builder has imported it`);
    if (future.length === 0) return;
    logger.warn(
      `the records of ${future.map(({ id }) => id).join(', ')} have dates in the future and count as made now: ` +
        'a clock was ahead, or this one is behind; set the clock of this host',
    );
  }

  /** Waits until the next poll is due or something has changed. */
  async #pause(signal: AbortSignal): Promise<void> {
    await delay(this.#rest, undefined, { signal }).catch(() => {}); // an abort ends the pause early
    this.#rest = 0;
    if (signal.aborted || this.#planDue === -Infinity) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, this.#options.pollInterval);
    this.#wake = resolve;
    await promise;
    clearTimeout(timer);
    this.#wake = undefined;
  }

  #replan(): void {
    this.#planDue = -Infinity;
    this.#wake?.();
  }

  /** Images that a builder should offer. */
  *#imagesOnRecord(): Iterable<string> {
    for (const { id, state } of this.#state.builds.values()) {
      if (state === 'ready' || state === 'deleting') yield id;
    }
  }

  #isLongAbsent(imageId: string): boolean {
    const { elapsed, configuration } = this.#options;
    const absence = elapsed() - (this.#absentSince.get(imageId) ?? Infinity);
    return absence >= configuration().timing.absenceTimeout * 1000;
  }

  async #readRequests(isSettled: boolean): Promise<void> {
    const pending = await this.#options.store.requests();
    const known = new Set([...this.#buildRequests.values()].flat());
    if (pending.length === known.size && pending.every(({ number }) => known.has(number))) return;
    // A user may have written the file just before the request, so the next pass handles it.
    if (isSettled && (await this.#isReloading())) return;
    const requested = await handleRequests(this.#context, pending, this.#tasks);
    const byDiskimage = Map.groupBy(requested, ({ diskimage }) => diskimage);
    this.#buildRequests = new Map(
      Array.from(byDiskimage, ([name, builds]) => [name, builds.map(({ number }) => number)]),
    );
    this.#planDue = -Infinity;
  }

  /**
   * Fails uploads whose image is gone with its builder, because they would never end. Another image is uploaded
   * instead.
   */
  #failUploadsOfAbsentImages(): void {
    const limit = this.#options.configuration().timing.absenceTimeout;
    for (const id of this.#tasks.ids) {
      const upload = this.#state.uploads.get(id);
      if (upload?.state !== 'uploading') continue;
      if (!this.#isLongAbsent(upload.imageId)) continue;
      const reason = `no builder has offered image ${upload.imageId} for ${limit} s`;
      this.#tasks.abort(id, new ImageGoneError(reason));
    }
  }

  /** After a network partition, two builders may have built different images under one image-id. */
  #compareCopies(): void {
    const { fleet, elapsed } = this.#options;
    const { copied } = fleet.lastStatus;
    for (const id of this.#comparisons.all.keys()) {
      if (!copied.has(id)) this.#comparisons.succeeded(id);
    }
    for (const imageId of copied) {
      const { state, checksum } = this.#state.builds.get(imageId) ?? {};
      const id = `copies of ${imageId}`;
      if (state !== 'ready' || checksum === undefined || this.#tasks.ids.has(id)) continue;
      if ((this.#comparisons.all.get(imageId) ?? -Infinity) > elapsed()) continue;
      this.#comparisons.failed(imageId); // schedules the next comparison, in case copies remain
      this.#tasks.start(id, 'compare', (signal) => compareCopy(this.#context, imageId, signal));
    }
  }

  #observation(): Observation {
    const now = this.#options.now();
    const ahead = now - this.#options.elapsed();
    /** Converts times from the monotonic clock to the wall clock. */
    const toWallClock = (times: ReadonlyMap<string, number>): ReadonlyMap<string, number> =>
      new Map([...times].map(([id, time]) => [id, time + ahead]));
    return {
      now,
      offered: this.#options.fleet.lastStatus.offered,
      isComplete: this.#options.fleet.lastStatus.isComplete,
      inProgress: this.#tasks.ids,
      absentSince: toWallClock(this.#absentSince),
      retryAt: toWallClock(this.#retries.all),
      requested: new Set(this.#buildRequests.keys()),
    };
  }
}
