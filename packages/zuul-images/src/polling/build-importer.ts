import type { BuilderSite, Logger } from '@nodepool-builder/image-builder';
import { importedImageId } from '@nodepool-builder/image-builder/module-kit';
import type { ZuulApi } from '../api/zuul-api.ts';
import { type ChosenBuild, findBuild, type ImageSource, type UnusableBuild } from '../builds/find-build.ts';
import { type ProcessedBuilds, withImported, withSkipped } from '../builds/processed-builds.ts';

/** Settings of a {@link BuildImporter}. */
export interface BuildImporterOptions {
  /** Name of the disk image. */
  readonly name: string;
  readonly api: Pick<ZuulApi, 'builds'>;
  readonly source: ImageSource;
  readonly processed: Pick<ProcessedBuilds, 'history' | 'write'>;
  readonly site: Pick<BuilderSite, 'isOffered' | 'requestBuild'>;
  /** Whether the artifacts of a build have expired. */
  readonly isExpired: (chosen: ChosenBuild, signal: AbortSignal) => Promise<boolean>;
  readonly logger: Logger;
}

/** Finds new builds of one image and has builders import them. */
export class BuildImporter {
  readonly #options: BuildImporterOptions;
  /** Uuids of unusable builds that were logged. */
  #logged: ReadonlySet<string> = new Set();

  constructor(options: BuildImporterOptions) {
    this.#options = options;
  }

  /**
   * Imports until no new build is left; one may finish during an import.
   *
   * @throws ZuulError, ImageError, GearmanError: to retry later
   * @throws the signal's reason
   */
  async run(signal: AbortSignal): Promise<void> {
    const { api, source, processed } = this.#options;
    for (;;) {
      const { chosen, unusable } = await findBuild(api, source, processed.history, signal);
      this.#log(unusable);
      if (chosen === undefined) return;
      await this.#import(chosen, signal);
    }
  }

  async #import(chosen: ChosenBuild, signal: AbortSignal): Promise<void> {
    const { name, processed, site, logger } = this.#options;
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
    if (!(await this.#isExpired(chosen, title, signal))) throw failure;
    logger.warn(`${title}: skipped for good, because its artifacts have expired`);
    await processed.write(withSkipped(processed.history, chosen));
  }

  /** If the servers of the artifacts do not answer, the import is retried. */
  async #isExpired(chosen: ChosenBuild, title: string, signal: AbortSignal): Promise<boolean> {
    const { isExpired, logger } = this.#options;
    try {
      return await isExpired(chosen, signal);
    } catch (error) {
      signal.throwIfAborted();
      logger.warn(`${title}: cannot tell whether its artifacts have expired: ${(error as Error).message}`);
      return false;
    }
  }

  /** Warns of the newest unusable build that was not logged before. The first poll may find pages of them. */
  #log(unusable: readonly UnusableBuild[]): void {
    const { name, logger } = this.#options;
    const first = unusable.find(({ build }) => !this.#logged.has(build.uuid));
    if (first !== undefined) {
      logger.warn(`build ${first.build.uuid} of ${name} is unusable: ${first.reason}`);
    }
    this.#logged = new Set(unusable.map(({ build }) => build.uuid));
  }
}
