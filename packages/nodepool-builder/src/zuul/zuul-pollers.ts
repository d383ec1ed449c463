import { isDeepStrictEqual } from 'node:util';
import type { ServerAddress } from '@nodepool-builder/gearman-node';
import type { Logger } from '@nodepool-builder/image-builder';
import type { BuildReports } from './build-reports.ts';
import { GearmanBuilds, type ImageBuilds } from './image-builds.ts';
import type { ImagePoller } from './image-poller.ts';
import type { ZuulDiskImage } from './zuul-disk-image.ts';

/** What {@link ZuulPollers} work with. */
export interface ZuulPollersOptions {
  /** Where it is kept which builds were seen, a file for each image. */
  readonly directory: string;
  /** Builders behind any of them make the images. */
  readonly servers: readonly ServerAddress[];
  /** Whether an image lies here, offered already or not: when a builder starts it looks before it has registered. */
  readonly isHere: (imageId: string) => boolean;
  readonly logger: Logger;
}

/** Looks for new builds of all images that Zuul jobs make. What that takes is loaded with the first of them. */
export class ZuulPollers implements AsyncDisposable {
  readonly #options: ZuulPollersOptions;
  readonly #builds: ImageBuilds;
  readonly #pollers = new Map<string, ImagePoller>();
  #reports: BuildReports | undefined;
  #changes: Promise<void> = Promise.resolve();

  constructor(options: ZuulPollersOptions) {
    this.#options = options;
    this.#builds = new GearmanBuilds(options);
  }

  /** Has these images looked after from now on, and no others. Of those that did not change nothing is begun anew. */
  configure(diskimages: readonly ZuulDiskImage[]): void {
    const { logger } = this.#options;
    this.#changes = this.#changes
      .then(() => this.#change(diskimages))
      .catch((error: unknown) => {
        const reason = (error as Error).message;
        logger.error(`not all zuul-images are looked after: ${reason}; mend it, and reload`);
      });
  }

  /** Stops. Builds that were begun go on, and who looks next waits for them again. */
  async close(): Promise<void> {
    this.configure([]);
    await this.#changes;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #change(diskimages: readonly ZuulDiskImage[]): Promise<void> {
    const isWanted = (poller: ImagePoller): boolean =>
      diskimages.some((diskimage) => isDeepStrictEqual(diskimage, poller.diskimage));
    await Promise.all(
      [...this.#pollers].map(async ([name, poller]) => {
        if (isWanted(poller)) return;
        await poller.close();
        this.#pollers.delete(name);
      }),
    );
    for (const diskimage of diskimages) {
      if (!this.#pollers.has(diskimage.name)) this.#pollers.set(diskimage.name, await this.#start(diskimage));
    }
  }

  async #start(diskimage: ZuulDiskImage): Promise<ImagePoller> {
    const { directory, logger } = this.#options;
    if (diskimage.zuul.mqtt !== undefined && this.#reports === undefined) {
      const { BuildReports: Reports } = await import('./build-reports.ts');
      this.#reports = new Reports(logger);
    }
    const { ImagePoller: Poller } = await import('./image-poller.ts');
    return new Poller(diskimage, {
      directory,
      builds: this.#builds,
      ...(this.#reports !== undefined && { reports: this.#reports }),
      logger,
    });
  }
}
