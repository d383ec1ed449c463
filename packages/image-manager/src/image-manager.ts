import { setTimeout as delay } from 'node:timers/promises';
import type { ServerAddress } from '@nodepool-builder/gearman-node';
import { errorMessage } from '@nodepool-builder/image-builder/internal';
import type { ManagerConfiguration } from './configuration.ts';
import { BuilderFleet } from './gearman/builder-fleet.ts';
import { LeaderLoop } from './leader-loop.ts';
import type { ManagerState } from './records.ts';
import type { ManagerStore } from './store/state-store.ts';
import type { ManagerSite } from './tasks/tasks.ts';

/**
 * Options of an {@link ImageManager}. It only lists and deletes images in providers, because builders upload them. By
 * default it uses this host's clocks.
 */
export interface ImageManagerOptions
  extends Pick<ManagerSite, 'provider' | 'logger' | 'onEvent'>,
    Partial<Pick<ManagerSite, 'now' | 'elapsed'>> {
  readonly configuration: ManagerConfiguration;
  /** The caller closes it. */
  readonly store: ManagerStore;
  /** Job servers of the builders. */
  readonly servers: readonly ServerAddress[];
  /**
   * Returns true while a changed configuration is being loaded here, or by builders on this host. No step starts in the
   * meantime.
   */
  readonly isReloading?: (() => Promise<boolean>) | undefined;
  /** Milliseconds between two polls of job servers and requests. Default 2,000. */
  readonly pollInterval?: number;
}

/** Pause after an error of the leader loop, in milliseconds. */
const PAUSE = 1000;

/**
 * Decides which images are built, uploaded, kept and deleted, and has builders do it. Of several managers with one
 * store, one is the leader; the others stand by.
 */
export class ImageManager {
  readonly #options: ImageManagerOptions;
  #configuration: ManagerConfiguration;
  #records: ManagerState | undefined;

  constructor(options: ImageManagerOptions) {
    this.#options = options;
    this.#configuration = options.configuration;
  }

  /** The current records while this manager is the leader. */
  get records(): ManagerState | undefined {
    return this.#records;
  }

  /** Replaces the configuration, from the next plan on. */
  reconfigure(configuration: ManagerConfiguration): void {
    this.#configuration = configuration;
  }

  /** Runs until the signal aborts. Jobs that are running then continue at the builders. */
  async run(signal: AbortSignal): Promise<void> {
    const { servers, logger } = this.#options;
    const fleet = new BuilderFleet(servers, logger);
    // Closing at once ends the wait for a silent job server.
    const close = (): void => void fleet.close();
    signal.addEventListener('abort', close);
    try {
      while (!signal.aborted) {
        try {
          await this.#lead(fleet, signal);
        } catch (error) {
          if (signal.aborted) return;
          logger.error(`the manager failed and restarts: ${errorMessage(error)}`);
          await delay(PAUSE, undefined, { signal }).catch(() => {});
        }
      }
    } finally {
      signal.removeEventListener('abort', close);
      await fleet.close();
    }
  }

  async #lead(fleet: BuilderFleet, signal: AbortSignal): Promise<void> {
    const { store, provider, logger, pollInterval = 2000, onEvent, isReloading } = this.#options;
    const { now = Date.now, elapsed = () => performance.now() } = this.#options;
    const onStandby = (): void => {
      logger.info('another manager is the leader; standing by');
    };
    const leadership = await store.lead({ signal, onStandby });
    try {
      logger.info(`elected leader; the ids of its images end in -${store.owner}`);
      onEvent?.({ kind: 'leadership', isLeader: true });
      const configuration = (): ManagerConfiguration => this.#configuration;
      const onRecords = (records: ManagerState | undefined): void => {
        this.#records = records;
      };
      const site = { store, leadership, fleet, configuration, provider, logger };
      await LeaderLoop.run({ ...site, now, elapsed, pollInterval, isReloading, onEvent, onRecords }, signal);
      if (!signal.aborted) logger.warn('leadership lost; running jobs continue at the builders');
    } finally {
      onEvent?.({ kind: 'leadership', isLeader: false });
      await leadership.release();
    }
  }
}
