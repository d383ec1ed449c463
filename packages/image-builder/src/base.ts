import { BuildLog } from './build/build-log.ts';
import { formatsToMake } from './build/formats-to-make.ts';
import { createLoggedCommand } from './build/logged-command.ts';
import { type BuildContext, type BuildContextParts, createBuildContext } from './context.ts';
import type { DiskImage } from './disk-image.ts';
import { ImageError } from './errors.ts';
import type { ImageFormat } from './formats.ts';
import { checkImageId } from './image-id.ts';
import { LONGEST_TIMER } from './longest-timer.ts';
import type { Manifest } from './manifest.ts';
import { GRACE_PERIOD } from './process/command.ts';
import { type Environment, inheritedEnvironment, secretValues } from './process/inherited-environment.ts';
import { portion, steadyProgress } from './progress.ts';
import { describeFiles, findFiles } from './repository/publication.ts';
import type { BuildSite, ImageRepository } from './repository.ts';
import { asImageError } from './system-error.ts';
import type { Image, Logger, OperationOptions, Snapshot } from './types.ts';
import { checkValidation, validateImage } from './validation/image-validation.ts';

/** How long `createImage` may go on after it should have stopped, in milliseconds: commands get SIGKILL in it. */
const STOP_PERIOD = GRACE_PERIOD + 5_000;

/** Milliseconds by which the clocks of two hosts may differ without a warning. */
const CLOCK_TOLERANCE = 60_000;

/** One build: what `image-build:<name>` asks for. */
export interface BuildJob extends OperationOptions {
  readonly imageId: string;
  /** Where the image goes. */
  readonly repository: ImageRepository;
  readonly logger?: Logger;
  /** Where `<image-id>.log` goes; default `.nodepool-builder/logs` in the repository's directory. */
  readonly logDirectory?: string;
  /** How many logs of this image name are kept, this one included. Default 7. */
  readonly logRetention?: number;
  /** Size limit of the log in bytes; beyond it, only its beginning and its end are kept. Default 64 MiB. */
  readonly logLimit?: number;
  /** Called with each line of the build's log. */
  readonly onLine?: (line: string) => void;
  /** The largest disk in bytes that is converted for this image. Default 256 GiB. */
  readonly largestDisk?: number;
  /** The environment that commands begin with. Default: variables of this process that hold no secrets. */
  readonly environment?: Environment;
}

/** Makes images of one {@link DiskImage}. A builder of your own extends it and writes {@link createImage}. */
export abstract class BaseImageBuilder {
  readonly diskimage: DiskImage;
  /** The formats that {@link createImage} can make; without it, any. Others come by conversion when needed. */
  readonly nativeFormats?: readonly ImageFormat[];
  /** Whether it imports builds of another system, whose image-ids `importedImageId` makes: one copy serves a fleet. */
  readonly importsBuilds: boolean = false;

  constructor(diskimage: DiskImage) {
    this.diskimage = diskimage;
  }

  /**
   * Builds one image, validates it if that is wanted, and publishes it in the repository, whole or not at all. Whatever happens, nothing else is
   * left: no file, process, mount or loop device. An image that is there already under the same id and name is
   * the result at once, and a second build of an id that is being built waits for the first.
   *
   * @throws ImageError `invalid-image-id`, `image-exists`, `format-unknown`, `format-unavailable`,
   *   `invalid-configuration`, `command-not-found`, `command-failed`, `validation-failed`, `build-timeout`,
   *   `build-aborted`, `image-missing`, `disk-full`, `directory-not-usable`
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
   * Leaves the image in each of `context.formats` at `context.output(format)`, not empty. It may fail by
   * throwing anything, and should stop when `context.signal` aborts; {@link BuildContext.run} does that by itself.
   */
  protected abstract createImage(context: BuildContext): Promise<void>;

  async #make(
    job: BuildJob,
    formats: readonly ImageFormat[],
    { staging, state, onSettled, signal, onProgress }: BuildSite,
  ): Promise<Manifest> {
    const { imageId, repository, logger } = job;
    const { name, buildTimeout, secrets, validation } = this.diskimage;
    const started = new Date();
    const progress = steadyProgress(onProgress);
    const directory = job.logDirectory ?? repository.logDirectory;
    const log = await BuildLog.open({
      directory,
      imageId,
      imageName: name,
      retention: job.logRetention,
      limit: job.logLimit,
      secrets: [...(secrets ?? []), ...secretValues(), ...secretValues(job.environment)],
      onLine: job.onLine,
      logger,
    });
    const snapshots: Snapshot[] = [];
    let built: Date | undefined;
    const stop = stopSignal(imageId, signal, buildTimeout);
    try {
      const parts: BuildContextParts = {
        imageId,
        diskimage: this.diskimage,
        formats,
        environment: job.environment ?? inheritedEnvironment(),
        largestDisk: job.largestDisk,
        signal: stop.signal,
        staging,
        state,
        log,
        recordDirectory: (kind) => repository.recordDirectory(kind),
        setBuiltAt: (time) => {
          built = time;
          if (time.getTime() <= Date.now() + CLOCK_TOLERANCE) return;
          logger?.warn(
            `image ${imageId} has a build time in the future, ${time.toISOString()}: it counts as built now; set the clock of the host that built it, or of this host`,
          );
        },
        addSnapshot: (snapshot, settle) => {
          snapshots.push(snapshot);
          onSettled(settle);
        },
        onProgress: portion(progress, 0, validation === undefined ? 90 : 80),
      };
      const run = createLoggedCommand(parts);
      const context = createBuildContext(parts, run);
      await untilStopped(() => this.createImage(context), stop.signal);
      if (validation !== undefined) {
        progress({ done: 80, total: 100 });
        await findFiles(staging, imageId, formats);
        await untilStopped(() => validateImage(validation, { context, run, log }), stop.signal);
      }
      stop.clear();
      await staging.endNamespace();
      const files = await describeFiles(staging, imageId, formats, {
        signal,
        onProgress: portion(progress, 90, 100),
      });
      const finished = new Date();
      return {
        version: 1,
        'image-id': imageId,
        'image-name': name,
        builder: this.constructor.name,
        started: started.toISOString(),
        finished: finished.toISOString(),
        ...(built !== undefined && built < finished && { built: built.toISOString() }),
        files,
        ...(snapshots.length > 0 && { snapshots }),
      };
    } catch (cause) {
      const error = asImageError(cause, `building image ${imageId}`);
      await log.write(String(error));
      throw error;
    } finally {
      stop.clear();
      await log.close();
    }
  }
}

interface StopSignal {
  readonly signal: AbortSignal;
  clear(): void;
}

/** Aborts when the time is over or when nobody wants the build any more, with an error that says which. */
function stopSignal(imageId: string, outer: AbortSignal, seconds: number | undefined): StopSignal {
  const controller = new AbortController();
  const onAbort = (): void => {
    const { reason } = outer;
    const aborted = new ImageError('build-aborted', `the build of image ${imageId} was aborted`, {
      cause: reason,
    });
    controller.abort(reason instanceof ImageError ? reason : aborted);
  };
  const onTimeout = (): void => {
    const message = `the build of image ${imageId} took longer than ${seconds} s; see its log, or raise build-timeout`;
    controller.abort(new ImageError('build-timeout', message));
  };
  const timer =
    seconds === undefined ? undefined : setTimeout(onTimeout, Math.min(seconds * 1_000, LONGEST_TIMER));
  if (outer.aborted) onAbort();
  else outer.addEventListener('abort', onAbort);
  return {
    signal: controller.signal,
    clear: () => {
      clearTimeout(timer);
      outer.removeEventListener('abort', onAbort);
    },
  };
}

/** Does `work`. Once the signal aborts, its reason is the outcome, even if `work` never ends. */
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
    // Unless the builder has more to say about it.
    if (!(error instanceof ImageError && error.cause === signal.reason)) signal.throwIfAborted();
    throw error;
  } finally {
    signal.removeEventListener('abort', onAbort);
    clearTimeout(timer);
  }
  signal.throwIfAborted();
}
