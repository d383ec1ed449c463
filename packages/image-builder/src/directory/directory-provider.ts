import { rename, rm, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { CloudImage } from '../cloud/cloud-image.ts';
import { type CloudEntry, CloudImages, type CloudUpload, type UploadPart } from '../cloud/cloud-images.ts';
import { checkExternalId, checkImageName, noImage } from '../cloud/image-errors.ts';
import { checkDirectory, checkFreeSpace } from '../diagnosis/check-directory.ts';
import type { CheckResult } from '../diagnosis/check-result.ts';
import { syncToDisk } from '../durable.ts';
import { ImageError } from '../errors.ts';
import { formatRow, type ImageFormat } from '../formats.ts';
import { asImageError } from '../system-error.ts';
import type {
  AttestationDocument,
  CheckOptions,
  Logger,
  OperationOptions,
  UploadRequest,
  UploadResult,
} from '../types.ts';
import { copyImage } from './copy-image.ts';
import { LatestLinks } from './latest-links.ts';
import {
  type DirectoryEntry,
  type DirectoryManifest,
  describeManifest,
  foreignImage,
  MANIFEST,
  manifestPath,
  readEntries,
  readManifest,
  readWholeImages,
} from './manifest.ts';
import { listPartials, partialPath, removePartials, stateOf, writePartial } from './partial-file.ts';
import { placeImage, refuseForeign } from './place-image.ts';
import {
  checkSidecars,
  listLonelyManifests,
  placeSidecars,
  readSidecars,
  removeManifest,
  withNames,
} from './sidecars.ts';

/** Settings of a {@link DirectoryProvider}. */
export interface DirectoryProviderOptions {
  /** `providers[].name`. */
  readonly name: string;
  /** Absolute path of the served directory, such as a libvirt pool or a web server's folder. It must exist. */
  readonly directory: string;
  /** Accepted formats, the preferred one first. Default: qcow2. */
  readonly formats?: readonly ImageFormat[];
  /** Bytes per second, for all uploads together. Default: no limit. */
  readonly bandwidthLimit?: number;
  /** Gets a warning about each image with a future build time. Default: none. */
  readonly logger?: Pick<Logger, 'warn'>;
}

/**
 * A provider that serves images from a directory. An image is `<image-name>-<image-id>.<extension>`, which is its
 * external id. Its manifest is `<external-id>.json`, and its attestations are `<external-id>.<name>`. The symbolic link
 * `<image-name>-latest.<extension>` names the image that was built last.
 *
 * A file is copied to a hidden name that names its upload, and flushed. Then it gets its manifest, and then its name,
 * so that after a crash no image has its name without a manifest. Files without our manifest are never touched.
 */
export class DirectoryProvider extends CloudImages<CloudEntry, DirectoryEntry | undefined> {
  readonly #directory: string;
  readonly #logger: DirectoryProviderOptions['logger'];
  readonly #latest: LatestLinks;

  constructor({ name, directory, formats = ['qcow2'], bandwidthLimit, logger }: DirectoryProviderOptions) {
    super({ entry: { name, 'bandwidth-limit': bandwidthLimit }, formats });
    this.#directory = directory;
    this.#logger = logger;
    this.#latest = new LatestLinks(directory, (message) => this.#warn(message));
  }

  protected async listImages(): Promise<readonly CloudImage<DirectoryEntry>[]> {
    const entries = await this.#run('list of images', () => readEntries(this.#directory));
    return entries.map((entry) => describeManifest(this.name, entry));
  }

  protected override async getImage(
    externalId: string,
  ): Promise<CloudImage<DirectoryEntry | undefined> | undefined> {
    const target = this.#target(externalId);
    return await this.#run(`query of ${externalId}`, async () => {
      const manifest = await readManifest(target);
      if (manifest === undefined) {
        return (await stateOf(target)) === undefined ? undefined : foreignImage(externalId);
      }
      return describeManifest(this.name, { externalId, manifest, isWhole: true });
    });
  }

  protected async makeImage(running: CloudUpload): Promise<UploadResult> {
    const { request, signal, onProgress, limit } = running;
    const { uploadId, imageName, file, shared = false } = request;
    const externalId = fileName(this.name, request);
    const target = join(this.#directory, externalId);
    running.cleanUp = async () => {}; // placeImage leaves nothing, and other files may be those of another process
    const upload = async (): Promise<UploadResult> => {
      if (!shared) await removePartials(this.#directory, uploadId); // of an earlier attempt
      const existing = await refuseForeign(target, request);
      await checkSidecars(target, request.attestations ?? []);
      await this.#latest.refuseForeign(imageName, file.format);
      const uploaded = new Date();
      const built = await this.#buildTime(request, uploaded);
      if (!shared || existing === undefined || (await stateOf(target)) === undefined) {
        await placeImage(request, target, {
          signal,
          onProgress,
          limit,
          built,
          uploaded,
          remove: (manifest) => this.#remove(externalId, manifest),
        });
      } else if (request.attestations && file.checksums?.sha256 === existing.sha256) {
        await this.#addSidecars(target, request.attestations);
      }
      await this.#latest.update({ imageName, format: file.format, uploadId });
      await syncToDisk(this.#directory);
      return { externalId };
    };
    return await this.#change(externalId, { signal }, `upload of ${externalId}`, upload);
  }

  protected async removeImage({ externalId, native }: CloudImage<DirectoryEntry | undefined>): Promise<void> {
    await this.#run(`deletion of ${externalId}`, async () => {
      if (native !== undefined) await this.#remove(externalId, native.manifest);
      await syncToDisk(this.#directory);
    });
  }

  protected override async removeUpload(uploadId: string, signal: AbortSignal): Promise<void> {
    await super.removeUpload(uploadId, signal);
    await this.#run(`removal of upload ${uploadId}`, () => removePartials(this.#directory, uploadId));
  }

  protected override async listParts(): Promise<readonly UploadPart[]> {
    return await this.#run('list of partial uploads', async () => {
      return [...(await listPartials(this.#directory)), ...(await listLonelyManifests(this.#directory))];
    });
  }

  /**
   * Copies an image to a file, and compares its SHA-256 with the manifest.
   *
   * @throws ImageError `image-not-found`, `image-changed`
   */
  async download(externalId: string, path: string, options: OperationOptions = {}): Promise<void> {
    await this.#run(`download of ${JSON.stringify(externalId)}`, async () => {
      const images = await readWholeImages(this.#directory);
      const manifest = images.find((image) => image.externalId === externalId)?.manifest;
      if (manifest === undefined) throw noImage(this.#directory, externalId);
      const partial = `${path}.partial`;
      await rm(partial, { force: true });
      try {
        const source = { path: join(this.#directory, externalId), size: manifest.size };
        const { sha256 } = await copyImage(source, partial, options);
        if (sha256 !== manifest.sha256) {
          const message = `the SHA-256 of ${source.path} is ${sha256}, not ${manifest.sha256} as in its manifest`;
          throw new ImageError('image-changed', `${message}; upload it again`);
        }
        await rename(partial, path);
      } finally {
        await rm(partial, { force: true });
      }
    });
  }

  imagePath(externalId: string): string {
    return this.#target(externalId);
  }

  async getAttestations(externalId: string): Promise<readonly AttestationDocument[]> {
    const target = this.#target(externalId);
    return await this.#run(`attestations of ${externalId}`, async () => {
      return await readSidecars(target, await this.#manifestOf(target));
    });
  }

  async addAttestations(
    externalId: string,
    documents: readonly AttestationDocument[],
    options: OperationOptions = {},
  ): Promise<void> {
    const target = this.#target(externalId);
    await this.#change(externalId, options, `attestations of ${externalId}`, async () => {
      await this.#addSidecars(target, documents);
      await syncToDisk(this.#directory);
    });
  }

  async *diagnose({ largestImage }: CheckOptions = {}): AsyncIterable<CheckResult> {
    const name = `directory of provider ${this.name}`;
    let isUsable = true;
    for await (const result of checkDirectory(name, this.#directory)) {
      yield result;
      isUsable &&= result.status !== 'problem';
    }
    if (isUsable) yield await checkFreeSpace(name, this.#directory, largestImage, 'the largest image');
  }

  /** @throws ImageError `image-not-found` for an id that leads elsewhere */
  #target(externalId: string): string {
    checkExternalId(externalId);
    return join(this.#directory, externalId);
  }

  /** @throws ImageError `image-not-found` */
  async #manifestOf(target: string): Promise<DirectoryManifest> {
    const manifest = (await stateOf(target)) && (await readManifest(target));
    if (manifest === undefined) throw noImage(this.#directory, basename(target));
    return manifest;
  }

  /**
   * Names the documents in the manifest before it stores them, so that after a crash the deletion of the image finds
   * all.
   */
  async #addSidecars(target: string, documents: readonly AttestationDocument[]): Promise<void> {
    await checkSidecars(target, documents);
    const manifest = await this.#manifestOf(target);
    const { 'upload-id': uploadId } = manifest;
    const changed = { ...manifest, ...withNames(manifest, documents) };
    if (changed.attestations?.length !== manifest.attestations?.length) {
      const hidden = partialPath(this.#directory, uploadId);
      await writePartial(hidden, MANIFEST.text(changed));
      await rename(hidden, manifestPath(target));
    }
    await placeSidecars(target, uploadId, documents);
    // Another process may have deleted the image in the meantime.
    if ((await stateOf(target)) === undefined) await removeManifest(target, changed);
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
   * Moves the link, deletes the image, and deletes its manifest last. A crash in between leaves no dangling link, and a
   * second call finishes the work.
   */
  async #remove(externalId: string, manifest: DirectoryManifest): Promise<void> {
    const { 'image-name': imageName, 'upload-id': uploadId, format } = manifest;
    const target = join(this.#directory, externalId);
    await this.#latest.update({ imageName, format, uploadId, without: externalId });
    const now = await readManifest(target); // a later upload of the image may have replaced it
    if (now?.['upload-id'] === uploadId) {
      await rm(target, { force: true });
      await removeManifest(target, now);
    }
    await this.#latest.update({ imageName, format, uploadId }); // another process may have moved it back
  }

  #warn(message: string): void {
    this.#logger?.warn(`provider ${this.name}: ${message}`);
  }

  /** Runs work that changes the manifest of an image after earlier such work. */
  async #change<T>(
    externalId: string,
    options: OperationOptions,
    action: string,
    work: () => Promise<T>,
  ): Promise<T> {
    return await this.inImageTurn(externalId, options, () => this.#run(action, work));
  }

  /** Errors of the file system get a remedy, and name the provider. */
  async #run<T>(action: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw asImageError(error, `provider ${this.name}: ${action} in ${this.#directory}`);
    }
  }
}

/** @throws ImageError `provider-refused` */
function fileName(provider: string, { imageName, imageId, file }: UploadRequest): string {
  const name = `${imageName}-${imageId}.${formatRow(file.format).extension}`;
  const isLink = imageId === 'latest';
  checkImageName(provider, name, isLink ? 'is the name of the link to the latest image' : undefined);
  return name;
}
