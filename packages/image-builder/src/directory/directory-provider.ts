import { lstat, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { BandwidthLimit } from '../bandwidth-limit.ts';
import { ImageError } from '../errors.ts';
import { formatRow, type ImageFormat } from '../formats.ts';
import type { ImageFilter } from '../image-filter/image-filter.ts';
import { imageIdFault } from '../image-id.ts';
import { limitMode } from '../modes.ts';
import { asImageError, unlessMissing } from '../system-error.ts';
import type {
  CandidateOptions,
  ImageCandidate,
  ImageProvider,
  Leftover,
  Logger,
  OperationOptions,
  ProviderImage,
  UploadRequest,
  UploadResult,
} from '../types.ts';
import { toCandidate } from './candidate.ts';
import { type Entry, readEntries, readWholeImages } from './entries.ts';
import { refuseForeign, refuseForeignLink } from './foreign.ts';
import { LatestLinks } from './latest-links.ts';
import { leftoverFile, listPartials } from './leftovers.ts';
import { type DirectoryManifest, manifestPath, readManifest } from './manifest.ts';
import { PUBLISHED, removePartials, syncDirectory } from './partial-file.ts';
import { type PlaceOptions, placeImage, placeSharedImage } from './place-image.ts';

/** How a {@link DirectoryProvider} is set up. */
export interface DirectoryProviderOptions {
  /** `providers[].name`. */
  readonly name: string;
  /** Absolute path of the directory that serves: a libvirt pool, a web server's folder. It must exist. */
  readonly directory: string;
  /** The formats it takes, the best first. Default: qcow2. */
  readonly formats?: readonly ImageFormat[];
  /** Bytes a second, of all uploads together. Default: no limit. */
  readonly bandwidthLimit?: number;
  /** Gets a warning about each image with a build time in the future. Default: none. */
  readonly logger?: Pick<Logger, 'warn'>;
  /** Milliseconds since 1970. Default: the machine's clock. */
  readonly now?: () => number;
}

/**
 * A provider that serves images from a directory. An image is `<image-name>-<image-id>.<extension>` (which is
 * its external id), `<that>.json` beside it is its manifest, and the symbolic link `<image-name>-latest.<extension>`
 * names the one that was built last.
 *
 * A file is written under a hidden name that names its upload (as a reflink where the file system has them, else a sparse
 * copy), and flushed. Then it gets its manifest, and then its name: after a crash no image has its name without a
 * manifest. Files without our manifest are never touched.
 */
export class DirectoryProvider implements ImageProvider {
  readonly name: string;
  readonly formats: readonly ImageFormat[];
  readonly #directory: string;
  readonly #limit: BandwidthLimit | undefined;
  readonly #logger: Pick<Logger, 'warn'> | undefined;
  readonly #now: () => number;
  readonly #latest: LatestLinks;

  constructor(options: DirectoryProviderOptions) {
    const { name, directory, formats = ['qcow2'], bandwidthLimit, logger, now = Date.now } = options;
    this.name = name;
    this.formats = formats;
    this.#directory = directory;
    this.#limit = bandwidthLimit === undefined ? undefined : new BandwidthLimit(bandwidthLimit);
    this.#logger = logger;
    this.#now = now;
    this.#latest = new LatestLinks({ directory, now, warn: (message) => this.#warn(message) });
  }

  async upload(request: UploadRequest, options: OperationOptions = {}): Promise<UploadResult> {
    const { uploadId, imageId, imageName, file, shared = false } = request;
    const externalId = this.#fileName(imageName, imageId, file.format);
    const target = join(this.#directory, externalId);
    return await this.#explain(`upload of ${externalId}`, async () => {
      options.signal?.throwIfAborted();
      await this.#tighten();
      if (!shared) await removePartials(this.#directory, uploadId); // of an earlier try
      const there = await refuseForeign(target, request);
      await refuseForeignLink(this.#latest.path(imageName, file.format));
      const uploaded = new Date(this.#now());
      const place: PlaceOptions = {
        ...options,
        limit: this.#limit,
        built: await this.#buildTime(request, uploaded),
        uploaded,
        remove: (manifest) => this.#remove(externalId, manifest),
      };
      if (!shared) await placeImage(request, target, place);
      else if (there === undefined || !(await isThere(target)))
        await placeSharedImage(request, target, place);
      await this.#latest.update({ imageName, format: file.format, uploadId });
      await syncDirectory(this.#directory);
      return { externalId };
    });
  }

  async discard(uploadId: string, options: OperationOptions = {}): Promise<void> {
    const entries = await this.#explain(`removal of upload ${uploadId}`, () => readEntries(this.#directory));
    const left = entries.filter(({ manifest }) => manifest['upload-id'] === uploadId);
    for (const { externalId } of left) await this.delete(externalId, options);
    await this.#explain(`removal of upload ${uploadId}`, () => removePartials(this.#directory, uploadId));
  }

  async delete(externalId: string, options: OperationOptions = {}): Promise<void> {
    const fault = imageIdFault(externalId);
    if (fault !== undefined) {
      throw new ImageError(
        'image-not-found',
        `external-id ${JSON.stringify(externalId)} ${fault}; list shows the ids there are`,
      );
    }
    const target = join(this.#directory, externalId);
    await this.#explain(`deletion of ${externalId}`, async () => {
      options.signal?.throwIfAborted();
      const manifest = await readManifest(target);
      if (manifest === undefined) {
        if (!(await isThere(target))) return;
        throw new ImageError(
          'provider-refused',
          `${target} has no manifest of ours beside it, so it is not ours to delete; remove it by hand`,
        );
      }
      await this.#remove(externalId, manifest);
      await syncDirectory(this.#directory);
    });
  }

  async list(options: OperationOptions = {}): Promise<readonly ProviderImage[]> {
    return await this.#explain('list of images', async () => {
      options.signal?.throwIfAborted();
      const images = await readWholeImages(this.#directory);
      return images.map(({ externalId, manifest }) => ({
        externalId,
        ...(manifest['upload-id'] !== undefined && { uploadId: manifest['upload-id'] }),
        imageId: manifest['image-id'],
        imageName: manifest['image-name'],
        format: manifest.format,
        size: manifest.size,
        checksums: { md5: manifest.md5, sha256: manifest.sha256 },
        uploadedAt: new Date(manifest.uploaded),
      }));
    });
  }

  async candidates(_filter: ImageFilter, options: CandidateOptions = {}): Promise<readonly ImageCandidate[]> {
    return await this.#explain('list of images', async () => {
      options.signal?.throwIfAborted();
      return (await readWholeImages(this.#directory)).map(({ externalId, manifest }) =>
        toCandidate(externalId, manifest),
      );
    });
  }

  async leftovers(options: OperationOptions = {}): Promise<readonly Leftover[]> {
    return await this.#explain('list of leftovers', async () => {
      options.signal?.throwIfAborted();
      const broken = (await readEntries(this.#directory)).filter(({ isWhole }) => !isWhole);
      const manifests = await Promise.all(broken.map((entry) => this.#brokenImage(entry)));
      return [
        ...(await listPartials(this.#directory)),
        ...manifests.filter((leftover) => leftover !== undefined),
      ];
    });
  }

  #fileName(imageName: string, imageId: string, format: ImageFormat): string {
    const name = `${imageName}-${imageId}.${formatRow(format).extension}`;
    const fault = imageId === 'latest' ? 'is the name of the link to the latest image' : imageIdFault(name);
    if (fault === undefined) return name;
    throw new ImageError(
      'provider-refused',
      `provider ${this.name} cannot name a file ${JSON.stringify(name.slice(0, 80))}: it ${fault}; rename the image under providers[].images`,
    );
  }

  /** A manifest without an image. */
  async #brokenImage({ externalId, manifest }: Entry): Promise<Leftover | undefined> {
    const { 'upload-id': uploadId } = manifest;
    const target = join(this.#directory, externalId);
    if (uploadId === undefined) return undefined;
    return await leftoverFile(manifestPath(target), uploadId, async () => {
      if (!(await isThere(target))) await rm(manifestPath(target), { force: true });
    });
  }

  /** When the image was built; a time in the future counts as now. */
  async #buildTime({ builtAt, imageId, file }: UploadRequest, now: Date): Promise<Date> {
    const claimed = builtAt ?? (await stat(file.path)).mtime;
    if (claimed <= now) return claimed;
    this.#warn(
      `image ${imageId} has a build time in the future, ${claimed.toISOString()}: it counts as built now; set the clock of its builder`,
    );
    return now;
  }

  /**
   * Moves the link, then deletes the image, and its manifest last: a crash in between leaves no link that
   * dangles, and a second call finishes the work.
   */
  async #remove(externalId: string, manifest: DirectoryManifest): Promise<void> {
    const { 'image-name': imageName, 'upload-id': uploadId = externalId, format } = manifest;
    const target = join(this.#directory, externalId);
    await this.#latest.update({ imageName, format, uploadId, without: externalId });
    await rm(target, { force: true });
    await rm(manifestPath(target), { force: true });
    await this.#latest.update({ imageName, format, uploadId }); // another process may have moved it back
  }

  /** Removes write permissions that an earlier release, with a umask of 0, gave to all. */
  async #tighten(): Promise<void> {
    for (const { externalId } of await readEntries(this.#directory)) {
      for (const path of [externalId, manifestPath(externalId)]) {
        // Only its owner can change the mode of a file.
        await limitMode(join(this.#directory, path), PUBLISHED).catch(() => false);
      }
    }
  }

  #warn(message: string): void {
    this.#logger?.warn(`provider ${this.name}: ${message}`);
  }

  /** Gives what the file system says the form that names the provider and the remedy. */
  async #explain<T>(action: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw asImageError(error, `provider ${this.name}: ${action} in ${this.#directory}`);
    }
  }
}

async function isThere(path: string): Promise<boolean> {
  return (await unlessMissing(lstat(path))) !== undefined;
}
