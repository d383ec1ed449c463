import type { BuilderSite, Logger } from '@nodepool-builder/image-builder';
import { importedImageId, SYSTEM_CLOCK } from '@nodepool-builder/image-builder/internal';
import { type Clock, RetryPolicy } from '@nodepool-builder/image-builder/plugin';
import type { ZuulApi } from '../api/zuul-api.ts';
import {
  type BuildChoice,
  type ChosenBuild,
  findBuild,
  type ImageSource,
  type RefusedBuild,
} from '../builds/find-build.ts';
import { type ProcessedBuilds, withImported, withSkipped } from '../builds/processed-builds.ts';

/** Delays after a failed import, which may download an image each time. */
const RETRIES = {
  attempts: Number.POSITIVE_INFINITY,
  firstDelay: 60,
  maxDelay: 900,
  maxRetryAfter: 0,
};

/** Settings of a {@link BuildImporter}. */
export interface BuildImporterOptions {
  readonly api: Pick<ZuulApi, 'builds'>;
  readonly source: ImageSource;
  readonly processed: Pick<ProcessedBuilds, 'history' | 'write'>;
  readonly site: Pick<BuilderSite, 'isOffered' | 'requestBuild'>;
  /** Returns whether the artifacts of a build have expired. */
  readonly isExpired: (chosen: ChosenBuild, signal: AbortSignal) => Promise<boolean>;
  readonly logger: Logger;
  readonly clock?: Clock;
  /** Jitter of the delays, from 0 to below 1. */
  readonly random?: () => number;
}

/** A build whose import failed. */
interface FailedImport {
  readonly uuid: string;
  readonly failures: number;
  /** Milliseconds since 1970. */
  readonly retryAt: number;
}

/** Finds new builds of one image and has builders import them. */
export class BuildImporter {
  readonly #options: BuildImporterOptions;
  readonly #clock: Clock;
  readonly #retries: RetryPolicy;
  #failed: FailedImport | undefined;
  /** Uuids of builds that were logged because they are not imported. */
  #logged: ReadonlySet<string> = new Set();

  constructor(options: BuildImporterOptions) {
    const { clock = SYSTEM_CLOCK, ...time } = options;
    this.#options = options;
    this.#clock = clock;
    this.#retries = new RetryPolicy(RETRIES, time);
  }

  /**
   * Imports until no new build is left, because one may finish during an import. A build whose import failed waits, but
   * a newer one does not.
   *
   * @throws CloudError, ImageError, GearmanError: to retry later
   * @throws the signal's reason
   */
  async run(signal: AbortSignal): Promise<void> {
    const { api, source, processed } = this.#options;
    for (;;) {
      const choice = await findBuild(api, source, processed.history, signal);
      this.#log(choice);
      if (choice.chosen === undefined || this.#isWaiting(choice.chosen)) return;
      await this.#import(choice.chosen, signal);
    }
  }

  #isWaiting({ build }: ChosenBuild): boolean {
    return this.#failed?.uuid === build.uuid && this.#clock.now() < this.#failed.retryAt;
  }

  async #import(chosen: ChosenBuild, signal: AbortSignal): Promise<void> {
    const { processed, site, logger } = this.#options;
    const { name } = this.#options.source;
    const { uuid, endTime = 0 } = chosen.build;
    const imageId = importedImageId({ image: name, uuid, endTime });
    const title = `build ${uuid} of ${name}, which ended ${new Date(endTime).toISOString()}`;
    if (await site.isOffered(imageId, signal)) {
      logger.info(`${title}: a builder already has it as image ${imageId}`);
      await processed.write(withImported(processed.history, chosen));
      return;
    }
    logger.info(`${title}: requesting its import as image ${imageId}`);
    // An image-id may be longer than a unique key. Keys of different functions do not collide.
    const failure = await site.requestBuild({ name, imageId, key: uuid }, signal);
    if (failure === undefined) {
      logger.info(`${title}: imported as image ${imageId}`);
      await processed.write(withImported(processed.history, chosen));
      return;
    }
    if (!(await this.#isExpired(chosen, title, signal))) {
      this.#retryLater(uuid, title, failure);
      return;
    }
    logger.warn(`${title}: skipped for good, because its artifacts have expired`);
    await processed.write(withSkipped(processed.history, chosen));
  }

  #retryLater(uuid: string, title: string, { message }: Error): void {
    const failures = (this.#failed?.uuid === uuid ? this.#failed.failures : 0) + 1;
    const delay = this.#retries.delayAfter(failures) ?? 0;
    this.#failed = { uuid, failures, retryAt: this.#clock.now() + delay * 1000 };
    this.#options.logger.warn(
      `${title}: the import failed: ${message}; retrying in ${delay.toFixed(0)} s, unless a newer build ends`,
    );
  }

  /** Returns whether the artifacts have expired. If their servers do not respond, the import is retried. */
  async #isExpired(chosen: ChosenBuild, title: string, signal: AbortSignal): Promise<boolean> {
    const { isExpired, logger } = this.#options;
    try {
      return await isExpired(chosen, signal);
    } catch (error) {
      signal.throwIfAborted();
      logger.warn(`${title}: cannot check whether its artifacts have expired: ${(error as Error).message}`);
      return false;
    }
  }

  /**
   * Warns about the newest unusable build that was not logged before, because the first poll may find pages of them.
   * Each ignored build is logged once.
   */
  #log({ unusable, ignored }: BuildChoice): void {
    const { source, logger } = this.#options;
    const { name } = source;
    const isNew = ({ build }: RefusedBuild): boolean => !this.#logged.has(build.uuid);
    const first = unusable.find(isNew);
    if (first !== undefined) {
      logger.warn(`build ${first.build.uuid} of ${name} is unusable: ${first.reason}`);
    }
    for (const { build, reason } of ignored.filter(isNew)) {
      logger.info(`ignoring build ${build.uuid} of ${name}: ${reason}`);
    }
    this.#logged = new Set([...unusable, ...ignored].map(({ build }) => build.uuid));
  }
}
