import { setTimeout as delay } from 'node:timers/promises';
import type { ImageProvider, Logger } from '@nodepool-builder/image-builder';
import { Absences } from './absences.ts';
import type { ActContext } from './acts/act-context.ts';
import { Acts } from './acts/acts.ts';
import { beginSteps } from './acts/begin-steps.ts';
import { compareCopy } from './acts/copies.ts';
import { answerRequests } from './answer-requests.ts';
import type { ManagerConfiguration } from './configuration.ts';
import type { BuilderFleet, Observation } from './gearman/builder-fleet.ts';
import { Hopeless } from './gearman/hopeless.ts';
import { LeakCollector } from './leaks/leak-collector.ts';
import { LedState } from './led-state.ts';
import { buildsToAdopt } from './planning/adoption.ts';
import { correctFutureDates } from './planning/future-dates.ts';
import { plan } from './planning/plan.ts';
import type { OfferedFunctions, World } from './planning/step.ts';
import { RetryTimes } from './retry-times.ts';
import type { Leadership, StateStore } from './store/state-store.ts';

/** What a {@link LeadershipTerm} works with. */
export interface TermOptions {
  readonly store: StateStore;
  readonly leadership: Leadership;
  readonly fleet: BuilderFleet;
  /** As it is in force now. */
  readonly configuration: () => ManagerConfiguration;
  readonly provider: (name: string) => ImageProvider | undefined;
  readonly logger: Logger;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Milliseconds on a clock that is never set. */
  readonly elapsed: () => number;
  /** Between two looks at job servers and requests, in milliseconds. */
  readonly pollInterval: number;
}

/** How many times as long as it planned it rests: planning then takes a fifth of the time, whatever goes on. */
const REST = 4;

/** The longest pause between two planning passes, in milliseconds: what nobody tells is noticed then. */
const LONGEST_PAUSE = 60_000;

/**
 * The time for which this manager leads. It looks what is there, plans, and begins each step; the end of a step leads
 * to the next plan. Whatever it begins is on record before.
 */
export class LeadershipTerm {
  readonly #options: TermOptions;
  readonly #state: LedState;
  readonly #context: ActContext;
  readonly #acts: Acts;
  readonly #retries: RetryTimes;
  /** When copies of an image are compared again. */
  readonly #comparisons: RetryTimes;
  readonly #leaks: LeakCollector;
  readonly #absences = new Absences();
  /** The requests for builds that are not begun yet: their numbers, by disk image. */
  #demands: ReadonlyMap<string, readonly number[]> = new Map();
  /** The configuration that the last plan was made with. */
  #planned: ManagerConfiguration | undefined;
  #observation: Observation;
  /** On the clock that is never set. */
  #planDue = -Infinity;
  /** Milliseconds. */
  #rest = 0;
  #wake: (() => void) | undefined;

  private constructor(options: TermOptions, state: LedState, observation: Observation) {
    const { store, fleet, configuration, provider, logger, now, elapsed } = options;
    this.#options = options;
    this.#state = state;
    this.#observation = observation;
    this.#retries = new RetryTimes(() => configuration().timing);
    this.#comparisons = new RetryTimes(() => configuration().timing);
    this.#acts = new Acts({ retries: this.#retries, logger, elapsed, ended: () => this.#replan() });
    this.#context = {
      state,
      owner: store.owner,
      configuration,
      fleet,
      observe: () => this.#observe(),
      lastObservation: () => this.#observation,
      absence: (imageId) => this.#absence(imageId),
      provider,
      logger,
      now,
      elapsed,
    };
    this.#leaks = new LeakCollector(this.#context);
  }

  /** Leads until the signal aborts or the leadership is lost. What is under way then is left as it is on record. */
  static async run(options: TermOptions, signal: AbortSignal): Promise<void> {
    const state = new LedState(await options.store.read(), options.leadership);
    const term = new LeadershipTerm(options, state, await options.fleet.observe());
    await term.#run(AbortSignal.any([signal, options.leadership.lost]));
  }

  async #run(signal: AbortSignal): Promise<void> {
    const stop = (): void => {
      void this.#acts.stop(signal.reason);
      this.#wake?.();
    };
    signal.addEventListener('abort', stop);
    try {
      while (!signal.aborted) {
        await this.#pass(signal);
        await this.#pause(signal);
      }
    } finally {
      signal.removeEventListener('abort', stop);
      await Promise.all([this.#acts.stop(signal.reason), this.#leaks.idle()]);
    }
  }

  async #pass(signal: AbortSignal): Promise<void> {
    const { now, elapsed } = this.#options;
    const configuration = this.#options.configuration();
    if (configuration !== this.#planned) this.#demands = new Map();
    await this.#observe();
    await this.#takeRequests();
    this.#abandonHopeless();
    this.#compareCopies();
    this.#leaks.lookWhenDue(signal, () => this.#replan());
    if (signal.aborted || (configuration === this.#planned && elapsed() < this.#planDue)) return;
    await this.#adopt(configuration);
    await this.#correctFutureDates();
    const begun = performance.now();
    const { steps, nextAt = Infinity } = plan(configuration, this.#state, this.#world());
    this.#rest = REST * (performance.now() - begun);
    this.#planned = configuration;
    this.#planDue = elapsed() + Math.min(nextAt - now(), LONGEST_PAUSE);
    await beginSteps(this.#context, this.#acts, steps, this.#demands);
  }

  /** Puts on record what builders have taken of Zuul, all in one go. */
  async #adopt(configuration: ManagerConfiguration): Promise<void> {
    const { now, logger } = this.#options;
    const { offered } = this.#observation;
    const builds = buildsToAdopt(configuration, this.#state.builds, offered.uploads, now());
    if (builds.length === 0) return;
    await this.#state.change({ builds });
    for (const { id } of builds) logger.info(`build ${id}: Zuul built it, and a builder has it`);
  }

  /** Corrects records that were made while the clock ran ahead, so that their ages count. */
  async #correctFutureDates(): Promise<void> {
    const { now, logger } = this.#options;
    const { builds, uploads } = correctFutureDates(this.#state, now());
    if (builds.length + uploads.length === 0) return;
    await this.#state.change({ builds, uploads });
    const ids = [...builds, ...uploads].map(({ id }) => id).join(', ');
    logger.warn(
      `the records of ${ids} have dates in the future and count as made now: a clock ran ahead, or this one is behind; set the clock of this host`,
    );
  }

  /** Until it is time to look again, or something has changed. */
  async #pause(signal: AbortSignal): Promise<void> {
    await delay(this.#rest, undefined, { signal }).catch(() => {}); // the end cuts it short
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

  async #observe(): Promise<Observation> {
    const { elapsed, fleet } = this.#options;
    const observation = await fleet.observe();
    const before = this.#observation;
    // Acts that ask at the same time get the same.
    if (observation === before) return observation;
    this.#observation = observation;
    const { offered, isComplete } = observation;
    if (!offersTheSame(before.offered, offered)) this.#planDue = -Infinity;
    if (isComplete) this.#absences.look(this.#imagesNeeded(), offered.uploads, elapsed());
    return observation;
  }

  /** Images that ought to lie at a builder. */
  *#imagesNeeded(): Iterable<string> {
    for (const { id, state } of this.#state.builds.values()) {
      if (state === 'ready' || state === 'deleting') yield id;
    }
  }

  async #takeRequests(): Promise<void> {
    const pending = await this.#options.store.requests();
    const known = new Set([...this.#demands.values()].flat());
    if (pending.length === known.size && pending.every(({ number }) => known.has(number))) return;
    const demanded = await answerRequests(this.#context, pending);
    const byDiskimage = Map.groupBy(demanded, ({ diskimage }) => diskimage);
    this.#demands = new Map(
      Array.from(byDiskimage, ([name, builds]) => [name, builds.map(({ number }) => number)]),
    );
    this.#planDue = -Infinity;
  }

  /** An upload of an image that is gone, with its builder, will not end: another takes its place. */
  #abandonHopeless(): void {
    const limit = this.#options.configuration().timing.absenceLimit;
    for (const id of this.#acts.ids) {
      const upload = this.#state.uploads.get(id);
      if (upload?.state !== 'uploading') continue;
      if ((this.#absence(upload.imageId) ?? -Infinity) < limit * 1000) continue;
      this.#acts.abort(id, new Hopeless(`no builder has offered image ${upload.imageId} for ${limit} s`));
    }
  }

  /** After a partition two builders may have built under one image-id. */
  #compareCopies(): void {
    const { elapsed } = this.#options;
    const { copied } = this.#observation;
    for (const id of this.#comparisons.all.keys()) {
      if (!copied.has(id)) this.#comparisons.succeeded(id);
    }
    for (const imageId of copied) {
      const { state, checksum } = this.#state.builds.get(imageId) ?? {};
      const id = `copies of ${imageId}`;
      if (state !== 'ready' || checksum === undefined || this.#acts.ids.has(id)) continue;
      if ((this.#comparisons.all.get(imageId) ?? -Infinity) > elapsed()) continue;
      this.#comparisons.failed(imageId, elapsed()); // the time of the next, if copies remain
      this.#acts.begin(id, (signal) => compareCopy(this.#context, imageId, signal));
    }
  }

  #absence(imageId: string): number | undefined {
    const since = this.#absences.since(imageId);
    return since === undefined ? undefined : this.#options.elapsed() - since;
  }

  #world(): World {
    const now = this.#options.now();
    const ahead = now - this.#options.elapsed();
    /** Times on the clock that is never set, as dates. */
    const asDates = (times: ReadonlyMap<string, number>): ReadonlyMap<string, number> =>
      new Map([...times].map(([id, time]) => [id, time + ahead]));
    return {
      now,
      offered: this.#observation.offered,
      underWay: this.#acts.ids,
      absentSince: asDates(this.#absences.all),
      retryAt: asDates(this.#retries.all),
      demanded: new Set(this.#demands.keys()),
    };
  }
}

const KINDS = ['builds', 'uploads', 'deletes'] as const satisfies readonly (keyof OfferedFunctions)[];

function offersTheSame(a: OfferedFunctions, b: OfferedFunctions): boolean {
  return KINDS.every(
    (kind) => a[kind].size === b[kind].size && [...a[kind]].every((name) => b[kind].has(name)),
  );
}
