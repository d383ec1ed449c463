import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import {
  ATTESTATIONS,
  BILL_OF_MATERIALS,
  type FinishedBuild,
  type ImageAttester,
  type Material,
} from './attestation.ts';
import { createBuildContext } from './build/build-context.ts';
import { BuildLog } from './build/build-log.ts';
import { BuildSpace } from './build/build-space.ts';
import { hiddenNames, hiddenTexts, shownVariables } from './build/command-environment.ts';
import { formatsToMake } from './build/formats-to-make.ts';
import { createMask } from './build/mask.ts';
import { MAX_TIMER_DELAY } from './cancellation.ts';
import { removeTree } from './cleanup/privileged.ts';
import type { BuildContext, BuildJob } from './context.ts';
import type { DiskImage } from './disk-image.ts';
import { syncToDisk } from './durable.ts';
import { errorMessage, ImageError } from './errors.ts';
import type { ImageFormat } from './formats.ts';
import { checkImageId } from './image-id.ts';
import type { Manifest } from './manifest.ts';
import { GRACE_PERIOD } from './process/command.ts';
import { partDone, portion, steadyProgress } from './progress.ts';
import { describeFiles, findFiles } from './repository/publication.ts';
import type { BuildSite } from './repository.ts';
import { asImageError, unlessMissing } from './system-error.ts';
import type { Image } from './types.ts';
import { checkValidation, validateImage } from './validation/image-validation.ts';

/**
 * Timeout for `createImage` to end after its signal aborts, in milliseconds. It exceeds the time that commands need for
 * SIGKILL.
 */
const STOP_PERIOD = GRACE_PERIOD + 5_000;

/** Builds one {@link DiskImage}. A custom builder extends this class and implements {@link createImage}. */
export abstract class BaseImageBuilder {
  readonly diskimage: DiskImage;
  /** Formats that {@link createImage} can make; absent for any. Other formats are converted when needed. */
  readonly nativeFormats?: readonly ImageFormat[];

  constructor(diskimage: DiskImage) {
    this.diskimage = diskimage;
  }

  /**
   * Builds one image, validates it if configured, and publishes it in the repository, completely or not at all. No
   * file, process, mount or loop device remains. If an image with the same id and name exists, it is returned.
   * Concurrent calls for one id share a build.
   *
   * @throws ImageError `invalid-image-id`, `image-exists`, `format-unknown`, `format-unavailable`,
   * `invalid-configuration`, `command-not-found`, `command-failed`, `validation-failed`, `build-timeout`,
   * `build-aborted`, `image-missing`, `disk-full`, `directory-not-usable`
   */
  async build(job: BuildJob): Promise<Image> {
    const { imageId, repository } = job;
    checkImageId(imageId);
    const formats = formatsToMake(this.diskimage, this.nativeFormats);
    const { name, validation } = this.diskimage;
    if (validation !== undefined) checkValidation(name, validation, formats);
    return await repository.add(imageId, name, (site) => this.#make(job, formats, site), job);
  }

  /**
   * Writes the image in each of `context.formats` to `context.output(format)`. It may throw any error, and must stop
   * when `context.signal` aborts, as {@link BuildContext.run} does.
   */
  protected abstract createImage(context: BuildContext): Promise<void>;

  async #make(job: BuildJob, formats: readonly ImageFormat[], site: BuildSite): Promise<Manifest> {
    const { imageId, repository, logger } = job;
    const { name } = this.diskimage;
    const secrets = hiddenTexts(this.diskimage, job.environment);
    const log = await BuildLog.open({
      directory: job.logDirectory ?? repository.logDirectory,
      imageId,
      imageName: name,
      retention: job.logRetention,
      shownAs: job.logName,
      secrets,
      onLine: job.onLine,
      logger,
    });
    const hidden = hiddenNames(this.diskimage, job.environment);
    if (hidden !== undefined) void log.write(hidden);
    let percent = 0; // some builders repeat stages, but a build does not start again
    const onProgress = steadyProgress((progress) => {
      if (progress.waiting !== undefined) void log.write(`# waiting for ${progress.waiting}`);
      percent = Math.max(percent, Math.floor(partDone(progress) * 100));
      site.onProgress({ ...progress, done: percent, total: 100 });
    });
    const space = new BuildSpace({ ...site, onProgress }, imageId);
    try {
      await job.attester?.check();
      await site.staging.hideFiles(job.attester?.secretFiles ?? []);
      await space.reserve();
      return await this.#makeReserved(job, formats, { ...site, onProgress }, log, space);
    } catch (cause) {
      const error = withoutSecrets(asImageError(cause, `building image ${imageId}`), secrets);
      await log.writeEnd(String(error));
      throw error;
    } finally {
      space.release();
      await log.close();
    }
  }

  async #makeReserved(
    job: BuildJob,
    formats: readonly ImageFormat[],
    site: BuildSite,
    log: BuildLog,
    space: BuildSpace,
  ): Promise<Manifest> {
    const { staging, signal, onProgress } = site;
    const { imageId } = job;
    const { name, buildTimeout, validation } = this.diskimage;
    const started = new Date();
    const stop = buildSignal(imageId, signal, buildTimeout);
    try {
      const context = createBuildContext({
        job,
        diskimage: this.diskimage,
        formats,
        site,
        log,
        signal: stop.signal,
        onProgress: portion(onProgress, 0, validation === undefined ? 90 : 80),
        reserveSpace: (path, bytes) => space.extend(path, bytes, stop.signal),
      });
      await untilStopped(() => this.createImage(context), stop.signal);
      if (validation !== undefined) {
        onProgress({ done: 80, total: 100 });
        await findFiles(staging, imageId, formats);
        await untilStopped(() => validateImage(validation, context), stop.signal);
      }
      clearTimeout(stop.timer);
      await staging.endNamespace();
      const files = await describeFiles(staging, imageId, formats, {
        signal,
        onProgress: portion(onProgress, 90, 100),
      });
      const finished = new Date();
      const { built, snapshots, materials } = context.reported;
      const manifest: Manifest = {
        version: 1,
        'image-id': imageId,
        'image-name': name,
        builder: this.constructor.name,
        started: started.toISOString(),
        finished: finished.toISOString(),
        ...(built !== undefined && built < finished && { built: built.toISOString() }),
        'disk-space': await space.peak(),
        files,
        ...(snapshots.length > 0 && { snapshots }),
      };
      if (job.attester !== undefined) {
        const { diskimage } = this;
        const mask = createMask(hiddenTexts(diskimage, job.environment));
        const build: FinishedBuild = {
          manifest,
          diskimage,
          materials: materials.map((material) => masked(material, mask)),
          environment: shownVariables(diskimage, mask),
          directory: staging.directory,
        };
        await attest(job.attester, build, signal);
      }
      return manifest;
    } finally {
      clearTimeout(stop.timer);
    }
  }
}

/**
 * Returns an error for clients and other logs. An error that quotes a secret loses its cause, which may also quote it.
 */
function withoutSecrets(error: unknown, secrets: readonly string[]): unknown {
  if (!(error instanceof Error)) return error;
  const message = createMask(secrets)(error.message);
  if (message === error.message) return error;
  return error instanceof ImageError ? new ImageError(error.code, message) : new Error(message);
}

function masked({ name, uri, digest, annotations }: Material, mask: (text: string) => string): Material {
  const shown = Object.entries(annotations ?? {}).map(
    ([key, value]) => [key, typeof value === 'string' ? mask(value) : value] as const,
  );
  return {
    name: mask(name),
    ...(uri !== undefined && { uri: mask(uri) }),
    digest,
    ...(annotations !== undefined && { annotations: Object.fromEntries(shown) }),
  };
}

/**
 * Attests a build. Documents that the build itself wrote under the names of attestations are removed, because they
 * prove nothing.
 */
async function attest(attester: ImageAttester, build: FinishedBuild, signal: AbortSignal): Promise<void> {
  const { directory, manifest } = build;
  const companions = join(directory, `${manifest['image-id']}.d`);
  const isDirectory = (await unlessMissing(lstat(companions)))?.isDirectory();
  // A link would redirect the documents to another location.
  if (isDirectory === false) await removeTree(companions);
  for (const name of (await unlessMissing(readdir(companions))) ?? []) {
    if (name === ATTESTATIONS || BILL_OF_MATERIALS.test(name)) await removeTree(join(companions, name));
  }
  signal.throwIfAborted();
  await attester.attestBuild(build, { signal });
  signal.throwIfAborted();
  await syncTree(companions);
}

/** Flushes the attestation files before the image is published with them. */
async function syncTree(companions: string): Promise<void> {
  const entries = (await unlessMissing(readdir(companions, { withFileTypes: true }))) ?? [];
  const own = entries.filter(({ name }) => name === ATTESTATIONS || BILL_OF_MATERIALS.test(name));
  for (const entry of own) {
    const path = join(companions, entry.name);
    if (entry.isDirectory()) for (const name of await readdir(path)) await syncToDisk(join(path, name));
    await syncToDisk(path);
  }
  if (own.length > 0) await syncToDisk(companions);
}

/** Aborts at the time limit or when the build is cancelled, with an error that names the reason. */
function buildSignal(
  imageId: string,
  outer: AbortSignal,
  seconds: number | undefined,
): { readonly signal: AbortSignal; readonly timer: NodeJS.Timeout | undefined } {
  const controller = new AbortController();
  const onAbort = (): void => {
    const { reason } = outer;
    // An error of the Gearman client says nothing but that its cause aborted the job.
    const cause: unknown = Object(reason).cause ?? reason;
    const message = `the build of image ${imageId} was aborted: ${errorMessage(cause)}`;
    const aborted = new ImageError('build-aborted', message, { cause: reason });
    controller.abort(reason instanceof ImageError ? reason : aborted);
  };
  const onTimeout = (): void => {
    const message = `the build of image ${imageId} took longer than ${seconds} s; see its log, or raise build-timeout`;
    controller.abort(new ImageError('build-timeout', message));
  };
  if (outer.aborted) onAbort();
  else outer.addEventListener('abort', onAbort);
  const limit = seconds === undefined ? undefined : Math.min(seconds * 1_000, MAX_TIMER_DELAY);
  return { signal: controller.signal, timer: limit === undefined ? undefined : setTimeout(onTimeout, limit) };
}

/** Runs `work`. Rejects with the signal's reason when it aborts, even if `work` never ends. */
async function untilStopped(work: () => Promise<void>, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  const givenUp = Promise.withResolvers<never>();
  let timer: NodeJS.Timeout | undefined;
  const onAbort = (): void => {
    timer = setTimeout(() => givenUp.reject(signal.reason), STOP_PERIOD);
  };
  signal.addEventListener('abort', onAbort);
  try {
    await Promise.race([work(), givenUp.promise]);
  } catch (error) {
    // Keeps an error that the builder itself throws.
    if (!(error instanceof ImageError && error.cause === signal.reason)) signal.throwIfAborted();
    throw error;
  } finally {
    signal.removeEventListener('abort', onAbort);
    clearTimeout(timer);
  }
  signal.throwIfAborted();
}
