import { stat } from 'node:fs/promises';
import {
  type AttestationDocument,
  type CandidateOptions,
  type CheckResult,
  type Checksums,
  type ImageCandidate,
  ImageError,
  type ImageFilter,
  type ImageFormat,
  type ImageProvider,
  type Logger,
  type OperationOptions,
  type PartialUpload,
  type ProviderImage,
  type UploadRequest,
  type UploadResult,
} from '@nodepool-builder/image-builder';
import {
  attempt,
  BandwidthLimit,
  checkAttestationName,
  cleanUpAfter,
  type DirectoryManifest,
  imageIdFault,
  KeyedQueue,
  MANIFEST,
  signalOf,
  steadyProgress,
  toCandidate,
  toProviderImage,
} from '@nodepool-builder/image-builder/module-kit';
import { KeptAttestations } from './attestations.ts';
import { diagnoseUploads } from './diagnose-s3.ts';
import { download } from './download.ts';
import { LatestPointers, notOurs } from './latest-pointers.ts';
import {
  abortMultiparts,
  hasFile,
  isMadeBy,
  lastPartAt,
  type MultipartUpload,
  sendParts,
  startMultipart,
} from './multipart-upload.ts';
import { ObjectStore, type StoredObject, type StoreOptions } from './object-store.ts';
import { externalIdOf, S3Keys } from './s3-keys.ts';
import type { S3Entry } from './s3-settings.ts';
import { StoredImages } from './stored-images.ts';
import { type UploadRecord, UploadRecords } from './upload-records.ts';

export interface S3ProviderOptions extends StoreOptions {
  readonly entry: S3Entry;
  /** Accepted formats, the preferred one first. */
  readonly formats: readonly ImageFormat[];
  readonly logger: Logger;
}

/**
 * A provider that keeps images in a bucket, as the provider `directory` does in a directory. An image is the object
 * `<image-name>-<image-id>-<digest of the upload id>.<extension>` (which is its external id), `<that>.json` is its manifest,
 * and `<image-name>-latest.<extension>.json` has the manifest and the key of the one that was built last.
 *
 * Attestations of an image are objects below `<that>.d/`, and are removed with it.
 *
 * The manifest is written after the object, and only an object with a manifest is an image. Objects without our metadata or
 * our manifest are never touched. No operation needs conditional requests, which many object stores do not know: no two
 * uploads have a common key, and a pointer is checked after it was written.
 */
export class S3Provider implements ImageProvider, Disposable {
  readonly name: string;
  readonly formats: readonly ImageFormat[];
  readonly #options: S3ProviderOptions;
  readonly #store: ObjectStore;
  readonly #keys: S3Keys;
  readonly #images: StoredImages;
  readonly #records: UploadRecords;
  readonly #attestations: KeptAttestations;
  readonly #latest: LatestPointers;
  readonly #limit: BandwidthLimit | undefined;
  readonly #turns = new KeyedQueue();

  constructor(options: S3ProviderOptions) {
    const { entry, formats, logger } = options;
    this.name = entry.name;
    this.formats = formats;
    this.#options = options;
    this.#store = new ObjectStore(options);
    this.#keys = new S3Keys(entry.prefix);
    this.#images = new StoredImages(this.name, this.#store, this.#keys, logger);
    this.#records = new UploadRecords(this.name, this.#store, this.#keys, logger);
    this.#attestations = new KeptAttestations(this.#store, this.#keys);
    this.#latest = new LatestPointers(this.name, this.#store, this.#keys, this.#images, logger);
    const limit = entry['bandwidth-limit'];
    this.#limit = limit === undefined ? undefined : new BandwidthLimit(limit);
  }

  /** @throws CloudError, ImageError `provider-refused` */
  async upload(request: UploadRequest, options: OperationOptions = {}): Promise<UploadResult> {
    const { uploadId, imageId, imageName, file, shared = false } = request;
    const externalId = externalIdOf(this.name, { uploadId, imageId, imageName, format: file.format });
    return await this.#turns.run(externalId, options, async (signal) => {
      const onProgress = steadyProgress(options.onProgress ?? (() => {}));
      try {
        await this.#place(request, externalId, signal, onProgress);
      } catch (error) {
        // Another process may have finished the same upload, and ended the multipart upload of this one.
        if (!(await this.#isDone(externalId, signal).catch(() => false))) {
          if (shared) throw error;
          const failed = { provider: this.name, imageId, logger: this.#options.logger, signal };
          throw await cleanUpAfter(error, failed, (cleanup) => this.#removeUpload(uploadId, cleanup));
        }
      }
      await this.#latest.point(imageName, file.format, signal);
      const stored = await this.#store.head(this.#keys.image(externalId), signal);
      onProgress({ done: 1, total: 1 });
      const reported = stored && { 's3-etag': stored.etag.replaceAll('"', '') };
      return { externalId, ...(reported && { reported }) };
    });
  }

  /** @throws CloudError */
  async discard(uploadId: string, options: OperationOptions = {}): Promise<void> {
    const signal = signalOf(options);
    await this.#removeUpload(uploadId, signal);
    for (const { externalId, manifest } of await this.#images.all(signal)) {
      if (manifest['upload-id'] === uploadId) await this.delete(externalId, options);
    }
  }

  /** @throws CloudError, ImageError `provider-refused`, `image-not-found` */
  async delete(externalId: string, options: OperationOptions = {}): Promise<void> {
    const reason = imageIdFault(externalId);
    if (reason !== undefined) {
      throw new ImageError(
        'image-not-found',
        `external-id ${JSON.stringify(externalId)} ${reason}; list shows the ids there are`,
      );
    }
    await this.#turns.run(externalId, options, async (signal) => {
      const manifest = await this.#images.manifest(externalId, signal);
      const key = this.#keys.image(externalId);
      if (manifest === undefined) {
        if ((await this.#store.head(key, signal)) === undefined) return;
        throw this.#notOurs(key);
      }
      const { 'image-name': imageName, 'upload-id': uploadId = '', format } = manifest;
      // The pointer moves first, and the manifest goes last: a second call finishes the work.
      await this.#latest.point(imageName, format, signal, externalId);
      await this.#removeObject(key, uploadId, signal);
      await this.#attestations.remove(externalId, signal);
      await this.#store.remove(this.#keys.manifest(externalId), signal);
      await this.#latest.point(imageName, format, signal); // another process may have moved it back
    });
  }

  /** @throws CloudError */
  async list(options: OperationOptions = {}): Promise<readonly ProviderImage[]> {
    return (await this.#images.whole(signalOf(options))).map(toProviderImage);
  }

  /** @throws CloudError */
  async findImages(_filter: ImageFilter, options: CandidateOptions = {}): Promise<readonly ImageCandidate[]> {
    return (await this.#images.whole(signalOf(options))).map(toCandidate);
  }

  /**
   * Downloads an image to a file.
   *
   * @throws CloudError, ImageError `image-not-found`
   */
  async download(externalId: string, path: string, options: OperationOptions = {}): Promise<void> {
    const manifest = await this.#existing(externalId, signalOf(options));
    await download({ ...options, store: this.#store, key: this.#keys.image(externalId), manifest, path });
  }

  /** @throws CloudError, ImageError `image-not-found` */
  async getAttestations(
    externalId: string,
    options: OperationOptions = {},
  ): Promise<readonly AttestationDocument[]> {
    const signal = signalOf(options);
    await this.#existing(externalId, signal);
    return await this.#attestations.read(externalId, signal);
  }

  /** @throws CloudError, ImageError `image-not-found` */
  async addAttestations(
    externalId: string,
    documents: readonly AttestationDocument[],
    options: OperationOptions = {},
  ): Promise<void> {
    for (const { name } of documents) checkAttestationName(name);
    await this.#turns.run(externalId, options, async (signal) => {
      await this.#existing(externalId, signal);
      await this.#attestations.write(externalId, documents, signal);
    });
  }

  /** @throws CloudError */
  async listPartialUploads(options: OperationOptions = {}): Promise<readonly PartialUpload[]> {
    const signal = signalOf(options);
    const partialUploads: PartialUpload[] = [];
    for (const { object, record } of await this.#records.all(signal)) {
      const { 'upload-id': uploadId, 'external-id': externalId } = record;
      const changedAt = await this.#lastChange(object, record, signal);
      partialUploads.push({
        uploadId,
        subject: `object ${this.#keys.image(externalId)} (unfinished)`,
        changedAt: new Date(changedAt),
        remove: async (again = {}) => {
          const during = signalOf(again);
          const now = (await this.#records.all(during)).find((each) => each.object.key === object.key);
          if (now?.object.etag !== object.etag) return false;
          if ((await this.#lastChange(now.object, now.record, during)) !== changedAt) return false;
          await this.#removeUpload(uploadId, during);
          return true;
        },
      });
    }
    return partialUploads;
  }

  async *diagnose(options: OperationOptions = {}): AsyncIterable<CheckResult> {
    const signal = signalOf(options);
    const store = new ObjectStore({ ...this.#options, attempts: 1 });
    try {
      const images = new StoredImages(this.name, store, this.#keys, this.#options.logger);
      const subject = `bucket ${store.bucket} of provider ${this.name}`;
      const listed = await attempt(subject, signal, async () => await images.whole(signal));
      const count = listed.value?.length ?? 0;
      yield listed.problem ?? {
        subject,
        status: 'ok',
        message: `has ${count} ${count === 1 ? 'image' : 'images'}`,
      };
      const permissions = `permissions for uploads to ${subject}`;
      if (!listed.problem) yield await diagnoseUploads(permissions, store, this.#keys, signal);
    } finally {
      store.close();
    }
  }

  /** Aborts running requests. */
  close(): void {
    this.#store.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  /** The manifest of an image. @throws CloudError, ImageError `image-not-found` */
  async #existing(externalId: string, signal: AbortSignal): Promise<DirectoryManifest> {
    const fault = imageIdFault(externalId);
    const manifest = fault === undefined ? await this.#images.manifest(externalId, signal) : undefined;
    if (manifest !== undefined) return manifest;
    const reason = `${this.#store.bucket} has no image ${JSON.stringify(externalId)}; list shows the ids there are`;
    throw new ImageError('image-not-found', reason);
  }

  /** Makes the object of an image, its attestations, and its manifest, unless they exist. */
  async #place(
    request: UploadRequest,
    externalId: string,
    signal: AbortSignal,
    onProgress: MultipartUpload['onProgress'],
  ): Promise<void> {
    const { uploadId, imageId, imageName, file, builtAt, metadata = {} } = request;
    const upload: MultipartUpload = {
      store: this.#store,
      key: this.#keys.image(externalId),
      uploadId,
      file,
      concurrency: this.#options.entry['upload-concurrency'],
      limit: this.#limit,
      signal,
      onProgress,
    };
    await this.#latest.read(imageName, file.format, signal);
    if (!(await this.#isDone(externalId, signal))) {
      const built = builtAt ?? (await stat(file.path)).mtime;
      for (const { name } of request.attestations ?? []) checkAttestationName(name);
      const checksums = await this.#send(request, externalId, upload);
      await this.#attestations.write(externalId, request.attestations ?? [], signal);
      const uploaded = new Date();
      const manifest: DirectoryManifest = {
        'image-id': imageId,
        'image-name': imageName,
        'upload-id': uploadId,
        format: file.format,
        size: file.size,
        ...checksums,
        built: (built > uploaded ? uploaded : built).toISOString(),
        uploaded: uploaded.toISOString(),
        metadata,
      };
      await this.#store.write(this.#keys.manifest(externalId), MANIFEST.text(manifest), signal);
    }
    // A request to begin, whose answer was lost, may have left a multipart upload of its own.
    await abortMultiparts(upload);
    await this.#records.remove(uploadId, signal);
  }

  /** Whether an image is complete. The key of an image has its upload. */
  async #isDone(externalId: string, signal: AbortSignal): Promise<boolean> {
    const manifest = await this.#images.manifest(externalId, signal);
    if (manifest === undefined) return false;
    return (await this.#store.head(this.#keys.image(externalId), signal))?.size === manifest.size;
  }

  /** Makes the object of an image, unless an earlier attempt has made it. */
  async #send(request: UploadRequest, externalId: string, upload: MultipartUpload): Promise<Checksums> {
    const { uploadId, file, shared = false } = request;
    const { key, signal } = upload;
    const object = await this.#store.head(key, signal);
    if (object !== undefined && !isMadeBy(uploadId, object)) throw this.#notOurs(key);
    const manifestKey = this.#keys.manifest(externalId);
    if ((await this.#store.head(manifestKey, signal)) !== undefined) {
      if ((await this.#images.manifest(externalId, signal)) === undefined) throw this.#notOurs(manifestKey);
      // Its object is missing or of another size. No image ever has the manifest of other bytes.
      await this.#store.remove(manifestKey, signal);
    }
    if (object !== undefined && file.checksums !== undefined && hasFile(upload, object))
      return file.checksums;
    const earlier = await this.#records.read(uploadId, signal);
    const known = earlier?.['multipart-id'];
    const isSame = earlier?.['external-id'] === externalId && earlier.sha256 === file.checksums?.sha256;
    const isOpaque = earlier?.['opaque-etags'] ?? false;
    // A part that two processes send has the ETag of the second one, and the first one cannot complete the upload.
    const mayResume = isSame && !(shared && isOpaque);
    if (mayResume && known !== undefined && (await lastPartAt(upload, known)) !== undefined) {
      return await sendParts(upload, { id: known, hasOpaqueEtags: isOpaque });
    }
    if (earlier !== undefined && !shared) await this.#removeUpload(uploadId, signal);
    const record: UploadRecord = {
      'upload-id': uploadId,
      'external-id': externalId,
      begun: new Date().toISOString(),
      ...(file.checksums && { sha256: file.checksums.sha256 }),
    };
    await this.#records.write(record, signal);
    const multipart = await startMultipart(upload);
    const { id, hasOpaqueEtags } = multipart;
    await this.#records.write({ ...record, 'multipart-id': id, 'opaque-etags': hasOpaqueEtags }, signal);
    return await sendParts(upload, multipart);
  }

  /** Removes what an unfinished upload has left. A finished image stays. */
  async #removeUpload(uploadId: string, signal: AbortSignal): Promise<void> {
    const record = await this.#records.read(uploadId, signal);
    if (record === undefined) return;
    const { 'external-id': externalId } = record;
    const key = this.#keys.image(externalId);
    await abortMultiparts({ store: this.#store, key, signal });
    if ((await this.#images.manifest(externalId, signal)) === undefined) {
      await this.#removeObject(key, uploadId, signal);
      await this.#attestations.remove(externalId, signal);
    }
    await this.#records.remove(uploadId, signal);
  }

  /** Removes the object of an upload, and none that anything else has put there. */
  async #removeObject(key: string, uploadId: string, signal: AbortSignal): Promise<void> {
    const object = await this.#store.head(key, signal);
    if (object === undefined) return;
    if (isMadeBy(uploadId, object)) await this.#store.remove(key, signal);
    else this.#options.logger.warn(`provider ${this.name}: ${this.#notOurs(key).message}`);
  }

  /** Time of the last change of an unfinished upload, in milliseconds. */
  async #lastChange(
    { changedAt }: StoredObject,
    { 'external-id': externalId, 'multipart-id': id }: UploadRecord,
    signal: AbortSignal,
  ): Promise<number> {
    const multipart = { store: this.#store, key: this.#keys.image(externalId), signal };
    const part = id === undefined ? undefined : await lastPartAt(multipart, id);
    return Math.max(changedAt.getTime(), part ?? 0);
  }

  #notOurs(key: string): ImageError {
    return notOurs(this.#store.bucket, key);
  }
}
