import type { BuilderEntry } from '@nodepool-builder/image-builder';
import { openZuulApi } from '../api/zuul-api.ts';
import { ProcessedBuilds } from '../builds/processed-builds.ts';
import { isImageExpired } from '../zuul-artifact/available-artifacts.ts';
import { imageSourceOf, type ZuulSettings } from '../zuul-settings.ts';
import { BuildImporter, type BuildImporterOptions } from './build-importer.ts';
import type { BuildReports, Subscription } from './build-reports.ts';
import { Poller } from './poller.ts';

/** Settings of an {@link ImagePoller}. */
export interface ImagePollerOptions extends Pick<BuildImporterOptions, 'site' | 'logger'> {
  /** Directory of the records of processed builds. */
  readonly directory: string;
  /** Needed for an image with `mqtt`. */
  readonly reports: BuildReports | undefined;
}

/** Polls for new builds of one image until it is closed. */
export class ImagePoller {
  readonly entry: BuilderEntry<ZuulSettings>;
  readonly #options: ImagePollerOptions;
  readonly #poller: Poller;
  readonly #subscription: Subscription | undefined;
  #importer: BuildImporter | undefined;

  constructor(entry: BuilderEntry<ZuulSettings>, options: ImagePollerOptions) {
    const { job, mqtt, 'poll-interval': pollInterval } = entry.settings;
    const { reports, logger } = options;
    this.entry = entry;
    this.#options = options;
    // Before the poller starts: a subscription that throws must leave nothing running.
    this.#subscription = mqtt && reports?.subscribe(mqtt, { job, wake: () => this.#poller.wake() });
    this.#poller = new Poller({
      name: entry.diskimage.name,
      poll: async (signal) => {
        this.#importer ??= await this.#createImporter();
        await this.#importer.run(signal);
      },
      interval: pollInterval * 1000,
      logger,
    });
  }

  /** Does not wait for a requested build: it continues, and the next poller waits for the same job. */
  async close(): Promise<void> {
    await this.#subscription?.close();
    await this.#poller.close();
  }

  /** Runs in a poll: an unreadable file is logged, and read again by the next poll. */
  async #createImporter(): Promise<BuildImporter> {
    const { diskimage, settings } = this.entry;
    const { name } = diskimage;
    const { directory, site, logger } = this.#options;
    return new BuildImporter({
      name,
      api: await openZuulApi(settings, logger),
      source: imageSourceOf(name, settings),
      processed: await ProcessedBuilds.open(directory, name),
      site,
      isExpired: ({ artifacts }, signal) => isImageExpired(artifacts, diskimage, settings, signal),
      logger,
    });
  }
}
