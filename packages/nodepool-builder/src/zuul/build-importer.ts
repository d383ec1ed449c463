import { JobExceptionError, JobFailedError } from '@nodepool-builder/gearman-node';
import { importedImageId, type Logger } from '@nodepool-builder/image-builder';
import {
  type BuildSource,
  type ChosenBuild,
  findBuild,
  type RefusedBuild,
  type SeenBuilds,
  type ZuulApi,
} from '@nodepool-builder/zuul-images';
import type { ImageBuilds } from './image-builds.ts';

/** What a {@link BuildImporter} works with. */
export interface BuildImporterOptions {
  /** Name of the disk image. */
  readonly name: string;
  readonly api: Pick<ZuulApi, 'builds'>;
  readonly source: BuildSource;
  readonly seen: Pick<SeenBuilds, 'memory' | 'taken' | 'givenUp'>;
  readonly builds: ImageBuilds;
  /** Whether the image of a build cannot be had any more. */
  readonly isGone: (chosen: ChosenBuild, signal: AbortSignal) => Promise<boolean>;
  readonly logger: Logger;
}

/** Finds new builds of one image, and has builders import them. */
export class BuildImporter {
  readonly #options: BuildImporterOptions;
  /** Builds that are of no use, and that the log has. */
  #told: ReadonlySet<string> = new Set();

  constructor(options: BuildImporterOptions) {
    this.#options = options;
  }

  /**
   * Imports until there is no new build: another one may end while one is imported.
   *
   * @throws ZuulError, ImageError, GearmanError: then the same is to be tried again later
   * @throws the signal's reason
   */
  async run(signal: AbortSignal): Promise<void> {
    const { api, source, seen } = this.#options;
    for (;;) {
      const { chosen, refused } = await findBuild(api, source, seen.memory, signal);
      this.#tell(refused);
      if (chosen === undefined) return;
      await this.#import(chosen, signal);
    }
  }

  async #import(chosen: ChosenBuild, signal: AbortSignal): Promise<void> {
    const { name, seen, builds, logger } = this.#options;
    const { uuid, endTime = 0 } = chosen.build;
    const imageId = importedImageId({ image: name, uuid, endTime });
    const what = `build ${uuid} of ${name}, which ended ${new Date(endTime).toISOString()}`;
    if (await builds.isOffered(imageId, signal)) {
      logger.info(`${what}: a builder has it already, as image ${imageId}`);
      await seen.taken(chosen);
      return;
    }
    logger.info(`${what}: having image ${imageId} made of it`);
    try {
      await builds.build({ name, imageId, uuid }, signal);
    } catch (error) {
      if (!isAnswer(error) || !(await this.#isGone(chosen, what, signal))) throw error;
      logger.warn(`${what}: given up: its artifacts are gone`);
      await seen.givenUp(chosen);
      return;
    }
    logger.info(`${what}: taken, as image ${imageId}`);
    await seen.taken(chosen);
  }

  /** What cannot be asked takes nothing from what the builder answered: the same is tried again later. */
  async #isGone(chosen: ChosenBuild, what: string, signal: AbortSignal): Promise<boolean> {
    const { isGone, logger } = this.#options;
    try {
      return await isGone(chosen, signal);
    } catch (error) {
      signal.throwIfAborted();
      logger.warn(`${what}: it is not known whether its artifacts are gone: ${(error as Error).message}`);
      return false;
    }
  }

  /**
   * Warns of the newest of those that were not told before: a job that returns no image is seldom what was meant. One
   * is enough, for the first look may find pages of them.
   */
  #tell(refused: readonly RefusedBuild[]): void {
    const { name, logger } = this.#options;
    const unusable = refused.filter(({ refusal }) => refusal === 'unusable');
    const [first] = unusable.filter(({ build }) => !this.#told.has(build.uuid));
    if (first !== undefined) {
      const { build, detail } = first;
      const reason = detail === undefined || detail === '' ? 'none of its artifacts is the image' : detail;
      logger.warn(`build ${build.uuid} of ${name} is of no use: ${reason}`);
    }
    this.#told = new Set(unusable.map(({ build }) => build.uuid));
  }
}

/** Whether a builder has answered: of what else went wrong the artifacts are no cause. */
function isAnswer(error: unknown): boolean {
  return error instanceof JobFailedError || error instanceof JobExceptionError;
}
