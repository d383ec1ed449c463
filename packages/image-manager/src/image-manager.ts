import { setTimeout as delay } from 'node:timers/promises';
import type { ServerAddress } from '@nodepool-builder/gearman-node';
import type { ImageProvider, Logger } from '@nodepool-builder/image-builder';
import type { ManagerConfiguration } from './configuration.ts';
import { BuilderFleet } from './gearman/builder-fleet.ts';
import { LeadershipTerm } from './leadership-term.ts';
import type { StateStore } from './store/state-store.ts';

/** What an {@link ImageManager} works with. */
export interface ImageManagerOptions {
  readonly configuration: ManagerConfiguration;
  /** The configured provider of that name: it lists and deletes; uploads are the builders' work. */
  readonly provider: (name: string) => ImageProvider | undefined;
  /** Stays open: it belongs to the caller. */
  readonly store: StateStore;
  /** The job servers behind which the builders are. */
  readonly servers: readonly ServerAddress[];
  readonly logger: Logger;
  /** Between two looks at job servers and requests, in milliseconds. Default 2,000. */
  readonly pollInterval?: number;
  /** Milliseconds since 1970. Default: the machine's clock. */
  readonly now?: () => number;
  /** Milliseconds on a clock that is never set. Default: since the process began. */
  readonly elapsed?: () => number;
}

/** The pause after a term that ended by an error, in milliseconds. */
const PAUSE = 1000;

/**
 * Decides what is built, uploaded, kept and deleted, and has builders do it. Of several managers with one store one
 * leads; the others stand by.
 */
export class ImageManager {
  readonly #options: ImageManagerOptions;
  #configuration: ManagerConfiguration;

  constructor(options: ImageManagerOptions) {
    this.#options = options;
    this.#configuration = options.configuration;
  }

  /** Puts another configuration in force, from the next plan on. */
  reconfigure(configuration: ManagerConfiguration): void {
    this.#configuration = configuration;
  }

  /** Leads whenever it may, until the signal aborts. What is under way then goes on at the builders. */
  async run(signal: AbortSignal): Promise<void> {
    const { servers, logger } = this.#options;
    const fleet = new BuilderFleet({ servers, logger });
    // At once: a job server that is silent would be waited for.
    const close = (): void => void fleet.close();
    signal.addEventListener('abort', close);
    try {
      while (!signal.aborted) {
        try {
          await this.#lead(fleet, signal);
        } catch (error) {
          if (signal.aborted) return;
          logger.error(`managing broke off, and begins anew: ${reasonOf(error)}`);
          await delay(PAUSE, undefined, { signal }).catch(() => {});
        }
      }
    } finally {
      signal.removeEventListener('abort', close);
      await fleet.close();
    }
  }

  async #lead(fleet: BuilderFleet, signal: AbortSignal): Promise<void> {
    const { store, provider, logger, pollInterval = 2000 } = this.#options;
    const { now = Date.now, elapsed = () => performance.now() } = this.#options;
    logger.info('waiting for the lead');
    const leadership = await store.lead({ signal });
    try {
      logger.info(`leading; images of ours end in -${store.owner}`);
      const configuration = (): ManagerConfiguration => this.#configuration;
      await LeadershipTerm.run(
        { store, leadership, fleet, configuration, provider, logger, now, elapsed, pollInterval },
        signal,
      );
      if (!signal.aborted) logger.warn('the lead is lost; what runs goes on at the builders');
    } finally {
      await leadership.release();
    }
  }
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
