import { Client, type ServerAddress } from '@nodepool-builder/gearman-node';
import type { Logger } from '@nodepool-builder/image-builder';
import { isOffered } from '../daemon/ask-servers.ts';
import { functionName } from '../daemon/functions.ts';

/** An image that a builder is to make of one build of Zuul. */
export interface WantedImage {
  /** Name of the disk image. */
  readonly name: string;
  readonly imageId: string;
  /** Of the build; jobs for one build are one job. */
  readonly uuid: string;
}

/** How images come about: by builders, whichever of them that is. */
export interface ImageBuilds {
  /** Whether a builder has the image. */
  isOffered(imageId: string, signal: AbortSignal): Promise<boolean>;
  /** Has a builder make the image, and resolves when it is there. Who asks while it is being made waits for the same. */
  build(image: WantedImage, signal: AbortSignal): Promise<void>;
}

/** What {@link GearmanBuilds} work with. */
export interface GearmanBuildsOptions {
  readonly servers: readonly ServerAddress[];
  /** Whether an image lies here, offered already or not. */
  readonly isHere: (imageId: string) => boolean;
  readonly logger: Logger;
}

/**
 * Has images built by the builders behind the job servers. Pollers of several hosts share a job only if they submit it
 * to the same server: the first in the configured order that can be reached. While a server can be reached by some
 * hosts only, an image may be built twice.
 */
export class GearmanBuilds implements ImageBuilds {
  readonly #options: GearmanBuildsOptions;

  constructor(options: GearmanBuildsOptions) {
    this.#options = options;
  }

  /** @throws ConnectionError `connect-failed` */
  async isOffered(imageId: string, signal: AbortSignal): Promise<boolean> {
    const { servers, isHere } = this.#options;
    return isHere(imageId) || (await isOffered(servers, functionName('image-upload', imageId), signal));
  }

  /**
   * @throws JobFailedError, JobExceptionError: the builder's answer
   * @throws GearmanError: nothing is known of the job
   */
  async build({ name, imageId, uuid }: WantedImage, signal: AbortSignal): Promise<void> {
    // a new client looks for the first server again, where one that lives on stays with the server that it has
    const { servers, logger } = this.#options;
    const client = new Client({ servers, clientId: 'nodepool-builder zuul poller', logger });
    try {
      // an image-id may be longer than a unique key; keys of different functions do not meet
      await client.submit(functionName('image-build', name), JSON.stringify({ 'image-id': imageId }), {
        unique: uuid,
        signal,
      });
    } finally {
      await client.close();
    }
  }
}
