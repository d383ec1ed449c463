import { EventEmitter } from 'node:events';
import { realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { DiskSpaceGuard } from './disk-space.ts';
import { ImageError } from './errors.ts';
import { checkSelfContained } from './formats/check-format.ts';
import { conversionSource, convertImage, isConvertible } from './formats/convert.ts';
import { checkFormats, FORMAT_NAMES, type ImageFormat } from './formats.ts';
import { KeyedQueue } from './keyed-queue.ts';
import { type Manifest, readManifest } from './manifest.ts';
import { portion, steadyProgress } from './progress.ts';
import { BuildCaches } from './repository/build-cache.ts';
import { attestConversion, forgetConversion } from './repository/conversion-document.ts';
import { emptyTrash, PendingDeletes } from './repository/deletion.ts';
import { DirectoryLock } from './repository/directory-lock.ts';
import { ImageCatalog, type ImageCatalogListener } from './repository/image-catalog.ts';
import { withoutStaleChecksums } from './repository/image-reader.ts';
import { imageFileName, Layout } from './repository/layout.ts';
import { describeFiles, refuseExisting } from './repository/publication.ts';
import { recover } from './repository/recovery.ts';
import type { BuildSite, FileOptions, ImageRepositoryEvents, Settle } from './repository/repository-types.ts';
import { Staging } from './repository/staging.ts';
import { StateDirectories } from './repository/state-directory.ts';
import { SingleFlight } from './single-flight.ts';
import { asImageError, explained } from './system-error.ts';
import type { Image, ImageFile, Logger, OperationOptions } from './types.ts';

export type { BuildSite, ImageRepositoryEvents, Settle } from './repository/repository-types.ts';

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
  /** Conversions, and the attestations about them. */
  readonly #conversions = new SingleFlight<ImageFile>();
  readonly #space = new DiskSpaceGuard();
  readonly #caches: BuildCaches;
  readonly #deletes = new SingleFlight<void>();
  /** Calls of {@link withImage}, by image id. */
  readonly #additions = new KeyedQueue();
  readonly #report = (error: unknown): void => void this.#logger?.error(String(error));
  #lock: DirectoryLock | undefined;

  private constructor(directory: string, logger: Logger | undefined) {
    super();
    this.#layout = new Layout(directory);
    this.#logger = logger;
    this.#states = new StateDirectories(this.#layout.state);
    this.#caches = new BuildCaches(this.#layout.cache);
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
   * Locks the directory, cleans up after a crash, and starts watching.
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

  /**
   * Returns the path for records of a module, such as the instances on which builds run. Its user creates the
   * directory.
   */
  recordDirectory(name: string): string {
    return join(this.#layout.workspace, name);
  }

  /** All complete images, by id. */
  get images(): ReadonlyMap<string, Image> {
    return this.#catalog.images;
  }

  /** Deleted images whose delete job may be assigned again, because the job server has not acknowledged its end. */
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
   * `image-too-large`, `conversion-failed`, `disk-full`, `build-aborted`
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
      return await this.#attested(imageId, present, options);
    }
    const target = formats.find(isConvertible);
    const source = conversionSource(image.files);
    if (target === undefined || source === undefined) throw unavailable(image, formats);
    const converted = this.#conversions.run(
      `${imageId} ${target}`,
      (flight) => this.#convert(imageId, source, target, { ...options, ...flight }),
      options,
    );
    const file = await explained(converted, `converting image ${imageId} to ${target}`, options.signal);
    return await this.#attested(imageId, file, options);
  }

  /**
   * Adds an image whose files `make` writes to a staging directory. If the image exists under the same name, it is
   * returned. Concurrent calls share one build, because a job server may assign a job twice.
   *
   * @throws ImageError `image-exists` if the id belongs to another image; errors of `make`
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
    } else if (!this.#pendingDeletes.ids.has(imageId)) {
      throw notFound(imageId);
    }
  }

  /**
   * Runs `work`, which adds something to an image, such as a document in `<image-id>.d`. Work on one image runs one
   * after the other, and its deletion waits for it, so that it removes everything.
   *
   * @throws ImageError `image-not-found`; errors of `work`
   */
  async withImage<T>(imageId: string, work: (image: Image) => Promise<T>): Promise<T> {
    const image = this.get(imageId);
    if (image === undefined || this.#deletes.has(imageId)) throw notFound(imageId);
    return await this.#additions.run(imageId, {}, () => work(image));
  }

  /** Forgets a deletion. Call it when the job server has acknowledged the end of the delete job. */
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
        const lastSpace = await this.#lastSpace(imageName);
        const shared = { space: this.#space, caches: this.#caches };
        const manifest = await make({ ...flight, ...shared, staging, state, lastSpace, onSettled });
        const image = await this.#catalog.publish(staging, manifest);
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

  async #lastSpace(imageName: string): Promise<number | undefined> {
    const [newest] = [...this.images.values()]
      .filter(({ name }) => name === imageName)
      .toSorted((one, other) => other.builtAt.getTime() - one.builtAt.getTime());
    if (newest === undefined) return undefined;
    return (await readManifest(this.#layout.manifest(newest.id), newest.id, this.#logger))?.['disk-space'];
  }

  async #convert(
    imageId: string,
    source: ImageFile,
    format: ImageFormat,
    { signal, onProgress, maxDiskSize, compress }: FileOptions & Required<OperationOptions>,
  ): Promise<ImageFile> {
    const progress = steadyProgress(onProgress);
    const started = performance.now();
    return await this.#staged(async (staging) => {
      const target = staging.path(imageFileName(imageId, format));
      await convertImage(source, format, target, {
        signal,
        onProgress: portion(progress, 0, 90),
        space: this.#space,
        maxDiskSize,
        compress,
      });
      const [converted] = await describeFiles(staging, imageId, [format], {
        signal,
        onProgress: portion(progress, 90, 100),
      });
      signal.throwIfAborted();
      const { checksums } = await withoutStaleChecksums(source, imageId, this.#layout);
      const from = checksums && { from: { format: source.format, sha256: checksums.sha256 } };
      await forgetConversion(this.#layout, imageId, format);
      const image = converted && (await this.#catalog.addFile(staging, imageId, { ...converted, ...from }));
      const file = image && fileOf(image, format);
      if (file === undefined) throw notFound(imageId);
      this.emit('converted', format, performance.now() - started);
      return file;
    });
  }

  /** Returns a file without checksums that no longer match it. If it was converted, the conversion is attested. */
  async #attested(
    imageId: string,
    file: ImageFile,
    { attester, ...options }: FileOptions,
  ): Promise<ImageFile> {
    const current = await withoutStaleChecksums(file, imageId, this.#layout);
    if (attester === undefined || current.checksums === undefined) return current;
    const { format } = file;
    const attest = async ({ signal }: Required<OperationOptions>): Promise<ImageFile> => {
      await attestConversion(attester, this.#layout, imageId, format, signal);
      return current;
    };
    const attested = this.#conversions.run(`${imageId} ${format} attestation`, attest, options);
    return await explained(attested, `attesting image ${imageId}`, options.signal);
  }

  async #delete(imageId: string): Promise<void> {
    await this.#conversions.abort(notFound(imageId), (key) => key.startsWith(`${imageId} `));
    await this.#additions.run(imageId, {}, async () => {}); // waits for earlier additions
    // Precedes the removal, so that listeners see the pending delete.
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

function fileOf(image: Image, format: ImageFormat): ImageFile | undefined {
  return image.files.find((file) => file.format === format);
}

function notFound(imageId: string): ImageError {
  const message = `image ${imageId} does not exist here; it was deleted, or never built here`;
  return new ImageError('image-not-found', message);
}

/** Makes the error for an image without a file from which one of the formats can be made. */
function unavailable(image: Image, formats: readonly ImageFormat[]): ImageError {
  const there = image.files.map(({ format }) => format).join(', ');
  return new ImageError(
    'format-unavailable',
    `image ${image.id} exists as ${there}, which cannot be converted to ${formats.join(' or ') || 'nothing'}; ` +
      'build it in a required format',
  );
}
