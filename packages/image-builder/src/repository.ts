import { EventEmitter } from 'node:events';
import { realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { ImageError } from './errors.ts';
import { checkSelfContained } from './formats/check-format.ts';
import { conversionSource, convertImage, isConvertible } from './formats/convert.ts';
import { DiskSpace } from './formats/disk-space.ts';
import { checkFormats, FORMAT_NAMES, type ImageFormat } from './formats.ts';
import { type Manifest, readManifest } from './manifest.ts';
import { portion, steadyProgress } from './progress.ts';
import { emptyTrash, PendingDeletes } from './repository/deletion.ts';
import { DirectoryLock } from './repository/directory-lock.ts';
import { ImageCatalog, type ImageCatalogListener } from './repository/image-catalog.ts';
import { imageFileName, Layout } from './repository/layout.ts';
import { describeFiles, refuseExisting } from './repository/publication.ts';
import { recover } from './repository/recovery.ts';
import { Staging } from './repository/staging.ts';
import { StateDirectories, type StateDirectory } from './repository/state-directory.ts';
import { SingleFlight } from './single-flight.ts';
import { asImageError } from './system-error.ts';
import type { Image, ImageFile, Logger, OperationOptions } from './types.ts';

/** Events of an {@link ImageRepository}. */
export interface ImageRepositoryEvents {
  /** A complete image appeared. */
  added: [image: Image];
  /** An image disappeared. */
  removed: [image: Image];
  /** An id left {@link ImageRepository.pendingDeletes}. */
  deleteForgotten: [imageId: string];
  /** A file was converted to a format, in this time. */
  converted: [format: ImageFormat, milliseconds: number];
}

/** Called at the end of a build, when its image is published or has failed. */
export type Settle = (isPublished: boolean) => Promise<void>;

/** Resources for making one image. */
export interface BuildSite extends Required<OperationOptions> {
  readonly staging: Staging;
  readonly state: StateDirectory;
  /** Registers a function that is called when the image is published or has failed. */
  readonly onSettled: (settle: Settle) => void;
}

interface FileOptions extends OperationOptions {
  /** Limit of the size of a disk that is converted, in bytes; default 256 GiB. */
  readonly largestDisk?: number;
}

/** The images of one directory, which is owned by one process. */
export class ImageRepository extends EventEmitter<ImageRepositoryEvents> {
  readonly #layout: Layout;
  readonly #logger: Logger | undefined;
  readonly #catalog: ImageCatalog;
  readonly #pendingDeletes: PendingDeletes;
  readonly #states: StateDirectories;
  readonly #builds = new SingleFlight<Image>();
  /** Image names of running builds, by image id. */
  readonly #building = new Map<string, string>();
  readonly #conversions = new SingleFlight<ImageFile>();
  readonly #space = new DiskSpace();
  readonly #deletes = new SingleFlight<void>();
  readonly #report = (error: unknown): void => void this.#logger?.error(String(error));
  #lock: DirectoryLock | undefined;

  private constructor(directory: string, logger: Logger | undefined) {
    super();
    this.#layout = new Layout(directory);
    this.#logger = logger;
    this.#states = new StateDirectories(this.#layout.state);
    this.#pendingDeletes = new PendingDeletes(this.#layout, (imageId) =>
      this.emit('deleteForgotten', imageId),
    );
    const listener: ImageCatalogListener = {
      onImage: (event, image) => {
        if (event === 'added') this.forgetDelete(image.id).catch(this.#report);
        this.emit(event, image);
      },
      onReturn: () => this.#takeOwnership(),
    };
    this.#catalog = new ImageCatalog(this.#layout, listener, logger);
  }

  /**
   * Locks the directory, cleans up after a crash, and begins to watch.
   *
   * @throws ImageError `directory-locked`, `directory-not-usable`, `disk-full`
   */
  static async open(
    directory: string,
    { logger, signal }: { readonly logger?: Logger; readonly signal?: AbortSignal } = {},
  ): Promise<ImageRepository> {
    let repository: ImageRepository | undefined;
    try {
      repository = new ImageRepository(await realpath(directory), logger);
      signal?.throwIfAborted();
      await repository.#takeOwnership();
      await recover(repository.#layout, logger);
      await repository.#pendingDeletes.load();
      signal?.throwIfAborted();
      await repository.#catalog.start();
      signal?.throwIfAborted();
      return repository;
    } catch (error) {
      await repository?.close();
      throw asImageError(error, `using "${directory}" as images-dir`);
    }
  }

  /** Absolute path, without symbolic links. */
  get directory(): string {
    return this.#layout.root;
  }

  /** Default directory of build logs. */
  get logDirectory(): string {
    return this.#layout.logs;
  }

  /** Path for records of a module, such as the instances that builds run on. Its user creates the directory. */
  recordDirectory(name: string): string {
    return join(this.#layout.workspace, name);
  }

  /** All complete images, by id. */
  get images(): ReadonlyMap<string, Image> {
    return this.#catalog.images;
  }

  /** Deleted images whose delete job may be assigned again: the job server has not acknowledged its end. */
  get pendingDeletes(): ReadonlySet<string> {
    return this.#pendingDeletes.ids;
  }

  get(imageId: string): Image | undefined {
    return this.images.get(imageId);
  }

  /**
   * Returns the image in one of `formats`: the first that is on disk, or else a conversion. Concurrent calls share a
   * conversion.
   *
   * @throws ImageError `image-not-found`, `format-unknown`, `format-unavailable`, `image-not-self-contained`,
   *   `image-too-large`, `conversion-failed`, `disk-full`, `build-aborted`
   */
  async file(
    imageId: string,
    formats: readonly ImageFormat[],
    options: FileOptions = {},
  ): Promise<ImageFile> {
    checkFormats(formats);
    const image = this.get(imageId);
    if (image === undefined || this.#deletes.has(imageId)) throw notFound(imageId);
    const present = formats.flatMap((format) => fileOf(image, format) ?? [])[0];
    if (present !== undefined) {
      await explained(checkSelfContained(present), `reading image ${imageId}`);
      return present;
    }
    const target = formats.find(isConvertible);
    const source = conversionSource(image.files);
    if (target === undefined || source === undefined) throw unavailable(image, formats);
    const converted = this.#conversions.run(
      `${imageId} ${target}`,
      (flight) => this.#convert(imageId, source, target, { ...options, ...flight }),
      options,
    );
    return await explained(converted, `converting image ${imageId} to ${target}`, options.signal);
  }

  /**
   * Adds an image whose files `make` writes to a staging directory. If the image exists under the same name, it is returned. Concurrent
   * calls share one build: a job server may assign a job twice.
   *
   * @throws ImageError `image-exists` if the id belongs to another image; what `make` throws
   */
  async add(
    imageId: string,
    imageName: string,
    make: (site: BuildSite) => Promise<Manifest>,
    options: OperationOptions = {},
  ): Promise<Image> {
    const there = this.get(imageId);
    if (there?.name === imageName) return there;
    const other = there === undefined ? this.#building.get(imageId) : (there.name ?? 'an unknown name');
    if (other !== undefined && other !== imageName) {
      throw new ImageError(
        'image-exists',
        `image ${imageId} exists as "${other}", not as "${imageName}"; delete it or choose another image-id`,
      );
    }
    const build = (flight: Required<OperationOptions>): Promise<Image> =>
      this.#build(imageId, imageName, make, flight);
    const built = this.#builds.run(imageId, build, options);
    return await explained(built, `building image ${imageId}`, options.signal);
  }

  /**
   * Removes every file of an image. Succeeds for an id in {@link pendingDeletes}.
   *
   * @throws ImageError `image-not-found`, `directory-not-usable`
   */
  async delete(imageId: string): Promise<void> {
    if (this.images.has(imageId) || this.#deletes.has(imageId)) {
      const deleted = this.#deletes.run(imageId, () => this.#delete(imageId));
      await explained(deleted, `deleting image ${imageId}`);
    } else if (!this.#pendingDeletes.has(imageId)) {
      throw notFound(imageId);
    }
  }

  /** Call when the job server has acknowledged the end of the delete job. */
  async forgetDelete(imageId: string): Promise<void> {
    await this.#pendingDeletes.forget(imageId);
  }

  /** Aborts builds and conversions, waits for their end, and unlocks the directory. */
  async close(): Promise<void> {
    const reason = new ImageError('build-aborted', `"${this.directory}" is being closed`);
    await Promise.all([this.#builds.abort(reason), this.#conversions.abort(reason), this.#deletes.settled()]);
    await this.#catalog.close();
    this.#pendingDeletes.close();
    await this.#lock?.release();
    this.#lock = undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #takeOwnership(): Promise<void> {
    await this.#lock?.release();
    await this.#layout.create();
    this.#lock = await DirectoryLock.take(this.#layout);
    this.#lock.onLost(() => {
      this.#report(`the process that held the lock on "${this.directory}" was killed; locking it again`);
      this.#takeOwnership().catch(this.#report);
    });
  }

  async #build(
    imageId: string,
    imageName: string,
    make: (site: BuildSite) => Promise<Manifest>,
    flight: Required<OperationOptions>,
  ): Promise<Image> {
    this.#building.set(imageId, imageName);
    const state = this.#states.of(imageName);
    const settles: Settle[] = [];
    let isPublished = false;
    try {
      await refuseExisting(this.#layout, imageId, FORMAT_NAMES);
      return await this.#staged(async (staging) => {
        const onSettled = (settle: Settle): void => void settles.push(settle);
        const manifest = await make({ ...flight, staging, state, onSettled });
        const image = await this.#catalog.publish(staging, manifest, manifest.files);
        isPublished = true;
        await state.clear().catch(this.#report);
        return image;
      });
    } finally {
      for (const settle of settles) await settle(isPublished).catch(this.#report);
      state.release();
      this.#building.delete(imageId);
    }
  }

  async #convert(
    imageId: string,
    source: ImageFile,
    format: ImageFormat,
    { signal, onProgress, largestDisk }: FileOptions & Required<OperationOptions>,
  ): Promise<ImageFile> {
    const progress = steadyProgress(onProgress);
    const started = performance.now();
    return await this.#staged(async (staging) => {
      const target = staging.path(imageFileName(imageId, format));
      await convertImage(source, format, target, {
        signal,
        onProgress: portion(progress, 0, 80),
        space: this.#space,
        largestDisk,
      });
      const fresh = await describeFiles(staging, imageId, [format], {
        signal,
        onProgress: portion(progress, 80, 100),
      });
      if (!this.images.has(imageId)) throw notFound(imageId);
      const known = await readManifest(this.#layout.manifest(imageId), imageId, this.#logger);
      const others = known?.files.filter((file) => file.format !== format) ?? [];
      const manifest: Manifest = { version: 1, 'image-id': imageId, ...known, files: [...others, ...fresh] };
      const image = await this.#catalog.publish(staging, manifest, fresh);
      const file = fileOf(image, format);
      if (file === undefined) throw notFound(imageId);
      this.emit('converted', format, performance.now() - started);
      return file;
    });
  }

  async #delete(imageId: string): Promise<void> {
    await this.#conversions.abort(notFound(imageId), (key) => key.startsWith(`${imageId} `));
    // Before the image is removed, so that listeners see the pending delete.
    this.#pendingDeletes.add(imageId);
    try {
      await this.#catalog.withdraw(imageId);
    } catch (error) {
      await this.forgetDelete(imageId);
      throw error;
    }
    await emptyTrash(this.#layout, imageId).catch(this.#report);
  }

  async #staged<T>(work: (staging: Staging) => Promise<T>): Promise<T> {
    const staging = await Staging.create(this.#layout.staging);
    try {
      return await work(staging);
    } finally {
      await staging.clear().catch(this.#report);
    }
  }
}

/** Waits for work and converts its failure to an {@link ImageError}. */
async function explained<T>(work: Promise<T>, doing: string, signal?: AbortSignal): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (signal?.aborted && !(error instanceof ImageError)) {
      throw new ImageError('build-aborted', `${doing} was aborted`, { cause: signal.reason });
    }
    throw asImageError(error, doing);
  }
}

function fileOf(image: Image, format: ImageFormat): ImageFile | undefined {
  return image.files.find((file) => file.format === format);
}

function notFound(imageId: string): ImageError {
  const message = `image ${imageId} is not there; it was deleted, or never built here`;
  return new ImageError('image-not-found', message);
}

function unavailable(image: Image, formats: readonly ImageFormat[]): ImageError {
  const there = image.files.map(({ format }) => format).join(', ');
  return new ImageError(
    'format-unavailable',
    `image ${image.id} is there as ${there}, which cannot be converted to ${formats.join(' or ') || 'nothing'}; ` +
      'build it in a format that is wanted',
  );
}
