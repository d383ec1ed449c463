import { isDeepStrictEqual } from 'node:util';
import type { BuilderEntry, BuilderService, BuilderSite, Logger } from '@nodepool-builder/image-builder';
import type { ZuulSettings } from '../zuul-settings.ts';
import type { BuildReports } from './build-reports.ts';

/** A running poller. */
interface RunningPoller {
  readonly entry: BuilderEntry<ZuulSettings>;
  readonly close: () => Promise<void>;
}

/** Polls for new builds of all images that Zuul jobs build. The HTTP and MQTT clients are loaded with the first image. */
export class ZuulPollers implements BuilderService<ZuulSettings> {
  readonly #site: Pick<BuilderSite, 'isOffered' | 'requestBuild'>;
  /** Directory of the records of processed builds, a file for each image. */
  readonly #directory: string;
  readonly #logger: Logger;
  readonly #pollers = new Map<string, RunningPoller>();
  #reports: BuildReports | undefined;
  #changes: Promise<void> = Promise.resolve();

  constructor(
    site: Pick<BuilderSite, 'isOffered' | 'requestBuild' | 'logger'> & {
      readonly repository: Pick<BuilderSite['repository'], 'recordDirectory'>;
    },
  ) {
    this.#site = site;
    this.#directory = site.repository.recordDirectory('zuul');
    this.#logger = site.logger('nodepool.builder.ZuulPoller');
  }

  /** Polls for these images and no others from now on. Pollers of unchanged images keep running. */
  configure(entries: readonly BuilderEntry<ZuulSettings>[]): void {
    this.#changes = this.#changes
      .then(() => this.#change(entries))
      .catch((error: unknown) => {
        const reason = (error as Error).message;
        this.#logger.error(
          `cannot poll for all zuul-images: ${reason}; correct the configuration and reload`,
        );
      });
  }

  /** Stops. Requested builds continue, and the next poller waits for the same jobs. */
  async close(): Promise<void> {
    this.configure([]);
    await this.#changes;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #change(entries: readonly BuilderEntry<ZuulSettings>[]): Promise<void> {
    await Promise.all(
      [...this.#pollers].map(async ([name, poller]) => {
        if (entries.some((entry) => isDeepStrictEqual(entry, poller.entry))) return;
        await poller.close();
        this.#pollers.delete(name);
      }),
    );
    for (const entry of entries) {
      const { name } = entry.diskimage;
      if (!this.#pollers.has(name)) this.#pollers.set(name, await this.#start(entry));
    }
  }

  async #start(entry: BuilderEntry<ZuulSettings>): Promise<RunningPoller> {
    if (entry.settings.mqtt !== undefined && this.#reports === undefined) {
      const { BuildReports: Reports } = await import('./build-reports.ts');
      this.#reports = new Reports(this.#logger);
    }
    const { pollImage } = await import('./image-poller.ts');
    const [directory, site, reports, logger] = [this.#directory, this.#site, this.#reports, this.#logger];
    return { entry, close: pollImage(entry, { directory, site, reports, logger }) };
  }
}
