import { isDeepStrictEqual } from 'node:util';
import type { BuilderEntry, BuilderService, BuilderSite } from '@nodepool-builder/image-builder';
import type { ZuulSettings } from '../zuul-settings.ts';
import { BuildReports } from './build-reports.ts';
import type { ImagePollerOptions } from './image-poller.ts';

/** A running poller. */
interface RunningPoller {
  readonly entry: BuilderEntry<ZuulSettings>;
  readonly close: () => Promise<void>;
}

/** Polls for new builds of all images that Zuul jobs build. The HTTP client is loaded with the first image. */
export class ZuulPollers implements BuilderService<ZuulSettings> {
  readonly #options: ImagePollerOptions;
  readonly #pollers = new Map<string, RunningPoller>();
  #changes: Promise<void> = Promise.resolve();

  constructor(
    site: Pick<BuilderSite, 'isOffered' | 'requestBuild' | 'logger'> & {
      readonly repository: Pick<BuilderSite['repository'], 'recordDirectory'>;
    },
  ) {
    const logger = site.logger('nodepool.builder.ZuulPoller');
    const directory = site.repository.recordDirectory('zuul');
    this.#options = { directory, site, reports: new BuildReports(logger), logger };
  }

  /** Polls from now on for exactly these images. Pollers of unchanged images keep running. */
  configure(entries: readonly BuilderEntry<ZuulSettings>[]): void {
    this.#changes = this.#changes
      .then(() => this.#change(entries))
      .catch((error: unknown) => {
        const reason = (error as Error).message;
        this.#options.logger.error(
          `cannot poll for all zuul-images: ${reason}; correct the configuration and reload`,
        );
      });
  }

  /** Stops. Requested builds continue, and the next poller waits for the same jobs. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.configure([]);
    await this.#changes;
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
      if (this.#pollers.has(name)) continue;
      const { pollImage } = await import('./image-poller.ts');
      this.#pollers.set(name, { entry, close: pollImage(entry, this.#options) });
    }
  }
}
