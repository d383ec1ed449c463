import {
  Client,
  JobExceptionError,
  JobFailedError,
  type ServerAddress,
} from '@nodepool-builder/gearman-node';
import type { BuilderSite, Logger } from '@nodepool-builder/image-builder';
import type { BuildRequest } from '@nodepool-builder/image-builder/module-kit';
import { isOffered } from './ask-servers.ts';
import { functionName } from './functions.ts';

/** Settings of {@link BuildRequests}. */
export interface BuildRequestsOptions {
  readonly servers: readonly ServerAddress[];
  /** Whether this host has an image, including one that it does not offer until it has connected. */
  readonly hasImage: (imageId: string) => boolean;
  readonly logger: Logger;
}

/**
 * Requests builds from the builders behind the job servers. Hosts share a job only if they submit it to the same server:
 * the first reachable one in the configured order. While a server is reachable by some hosts only, an image may be built
 * twice.
 */
export class BuildRequests implements Pick<BuilderSite, 'isOffered' | 'requestBuild'> {
  readonly #options: BuildRequestsOptions;

  constructor(options: BuildRequestsOptions) {
    this.#options = options;
  }

  /** @throws ConnectionError `connect-failed` */
  async isOffered(imageId: string, signal: AbortSignal): Promise<boolean> {
    const { servers, hasImage } = this.#options;
    return hasImage(imageId) || (await isOffered(servers, functionName('image-upload', imageId), signal));
  }

  /** @throws GearmanError if the result of the job is unknown */
  async requestBuild(
    { name, imageId, key }: BuildRequest,
    signal: AbortSignal,
  ): Promise<JobFailedError | JobExceptionError | undefined> {
    // A new client starts with the first server again; a long-lived one would stay with its current server.
    const { servers, logger } = this.#options;
    const client = new Client({ servers, clientId: 'nodepool-builder zuul poller', logger });
    try {
      const data = JSON.stringify({ 'image-id': imageId });
      await client.submit(functionName('image-build', name), data, { unique: key, signal });
      return undefined;
    } catch (error) {
      if (error instanceof JobFailedError || error instanceof JobExceptionError) return error;
      throw error;
    } finally {
      await client.close();
    }
  }
}
