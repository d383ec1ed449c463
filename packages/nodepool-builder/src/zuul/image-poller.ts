import { join } from 'node:path';
import { type Logger, makeStateDirectory } from '@nodepool-builder/image-builder';
import { buildSourceOf, isArtifactGone, Poller, SeenBuilds, zuulApiOf } from '@nodepool-builder/zuul-images';
import { BuildImporter } from './build-importer.ts';
import type { BuildReports, Subscription } from './build-reports.ts';
import type { ImageBuilds } from './image-builds.ts';
import type { ZuulDiskImage } from './zuul-disk-image.ts';

/** What an {@link ImagePoller} works with. */
export interface ImagePollerOptions {
  /** Where it is kept which builds were seen. */
  readonly directory: string;
  readonly builds: ImageBuilds;
  /** Needed for an image with `zuul.mqtt`. */
  readonly reports?: BuildReports;
  readonly logger: Logger;
}

/** Looks for new builds of one image, as long as it is not closed. */
export class ImagePoller implements AsyncDisposable {
  readonly diskimage: ZuulDiskImage;
  readonly #options: ImagePollerOptions;
  readonly #poller: Poller;
  readonly #subscription: Subscription | undefined;
  #importer: BuildImporter | undefined;

  constructor(diskimage: ZuulDiskImage, options: ImagePollerOptions) {
    const { name, zuul } = diskimage;
    const { reports, logger } = options;
    this.diskimage = diskimage;
    this.#options = options;
    // what cannot be subscribed to begins nothing
    this.#subscription =
      zuul.mqtt && reports?.subscribe(zuul.mqtt, { job: zuul.job, wake: () => this.#poller.wake() });
    this.#poller = new Poller({
      what: `new builds of ${name}`,
      look: async (signal) => {
        this.#importer ??= await this.#createImporter();
        await this.#importer.run(signal);
      },
      interval: zuul.pollInterval * 1000,
      logger,
    });
  }

  /** Does not wait for a build that was begun: it goes on, and who looks next waits for it again. */
  async close(): Promise<void> {
    await this.#subscription?.close();
    await this.#poller.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** In a look, so that what is wrong with files is logged, and mended without a restart. */
  async #createImporter(): Promise<BuildImporter> {
    const { diskimage } = this;
    const { name, zuul } = diskimage;
    const { directory, builds, logger } = this.#options;
    const path = join(directory, `${encodeURIComponent(name)}.json`);
    await makeStateDirectory(directory);
    return new BuildImporter({
      name,
      api: await zuulApiOf(zuul, logger),
      source: buildSourceOf(name, zuul),
      seen: await SeenBuilds.open(path),
      builds,
      isGone: ({ artifacts }, signal) => isArtifactGone(artifacts, diskimage, signal),
      logger,
    });
  }
}
