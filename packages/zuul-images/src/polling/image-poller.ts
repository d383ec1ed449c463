import { join } from 'node:path';
import type { BuilderEntry } from '@nodepool-builder/image-builder';
import { makeStateDirectory } from '@nodepool-builder/image-builder/module-kit';
import { buildSourceOf, zuulApiOf } from '../builds/image-source.ts';
import { ProcessedBuilds } from '../builds/processed-builds.ts';
import { isArtifactGone } from '../zuul-artifact/is-artifact-gone.ts';
import type { ZuulSettings } from '../zuul-settings.ts';
import { BuildImporter, type BuildImporterOptions } from './build-importer.ts';
import type { BuildReports, Subscription } from './build-reports.ts';
import { Poller } from './poller.ts';

/** Settings of an {@link ImagePoller}. */
export interface ImagePollerOptions extends Pick<BuildImporterOptions, 'fleet' | 'logger'> {
  /** Directory of the records of processed builds. */
  readonly directory: string;
  /** Needed for an image with `mqtt`. */
  readonly reports?: BuildReports;
}

/** Polls for new builds of one image until it is closed. */
export class ImagePoller implements AsyncDisposable {
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
      what: `new builds of ${entry.diskimage.name}`,
      look: async (signal) => {
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

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Runs in a poll: an unreadable file is logged, and read again by the next poll. */
  async #createImporter(): Promise<BuildImporter> {
    const { diskimage, settings } = this.entry;
    const { name } = diskimage;
    const { directory, fleet, logger } = this.#options;
    await makeStateDirectory(directory);
    return new BuildImporter({
      name,
      api: await zuulApiOf(settings, logger),
      source: buildSourceOf(name, settings),
      seen: await ProcessedBuilds.open(join(directory, `${encodeURIComponent(name)}.json`)),
      fleet,
      isGone: ({ artifacts }, signal) => isArtifactGone(artifacts, diskimage, settings, signal),
      logger,
    });
  }
}
