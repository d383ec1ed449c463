import type {
  AttestationDocument,
  CheckResult,
  OperationOptions,
  UploadResult,
} from '@nodepool-builder/image-builder';
import {
  checkAttestationName,
  checkExternalId,
  type DirectoryManifest,
  describeManifest,
  foreignImage,
  noImage,
} from '@nodepool-builder/image-builder/internal';
import {
  type CloudImage,
  CloudImages,
  type CloudImagesOptions,
  type CloudUpload,
  signalOf,
  type UploadPart,
} from '@nodepool-builder/image-builder/plugin';
import { diagnoseBucket } from './diagnose-s3.ts';
import { download } from './download.ts';
import { ImageUploads } from './image-uploads.ts';
import { LatestPointers } from './latest-pointers.ts';
import { ObjectStore, type StoreOptions } from './object-store.ts';
import { externalIdOf } from './s3-keys.ts';
import type { S3Entry } from './s3-settings.ts';
import { type StoredImage, StoredImages } from './stored-images.ts';

export interface S3ProviderOptions extends StoreOptions, CloudImagesOptions<S3Entry> {}

/**
 * A provider that stores images in a bucket, in the same layout as the provider `directory`. An image is the object
 * `<image-name>-<image-id>-<digest of the upload id>.<extension>`, which is its external id. Its manifest is `<external
 * id>.json`. The object `<image-name>-latest.<extension>.json` contains the manifest and the key of the latest build.
 *
 * Attestations of an image are objects below `<external id>.d/`, and are removed together with the image.
 *
 * The manifest is written after the object, and only an object with a manifest is an image. Objects without our
 * metadata or our manifest are never changed. No operation needs conditional requests, which many object stores do not
 * support: uploads never share a key, and a pointer is checked after it was written.
 */
export class S3Provider extends CloudImages<S3Entry, StoredImage | undefined> {
  readonly #options: StoreOptions;
  readonly #store: ObjectStore;
  readonly #images: StoredImages;
  readonly #latest: LatestPointers;
  readonly #uploads: ImageUploads;

  constructor(options: S3ProviderOptions) {
    super(options);
    this.#options = options;
    this.#store = new ObjectStore(options);
    this.#images = new StoredImages(this.#store);
    this.#latest = new LatestPointers(this.#store, this.#images);
    this.#uploads = new ImageUploads(this.#store, this.#images, this.entry['upload-concurrency']);
  }

  protected async listImages(signal: AbortSignal): Promise<readonly CloudImage<StoredImage>[]> {
    return (await this.#images.all(signal)).map((image) => describeManifest(this.name, image));
  }

  protected override async getImage(
    externalId: string,
    signal: AbortSignal,
  ): Promise<CloudImage<StoredImage | undefined> | undefined> {
    checkExternalId(externalId);
    const manifest = await this.#images.manifest(externalId, signal);
    if (manifest !== undefined) return describeManifest(this.name, { externalId, manifest, isWhole: true });
    const object = await this.#store.head(this.#store.keys.image(externalId), signal);
    return object && foreignImage(externalId);
  }

  protected override async checkUpload({ request }: CloudUpload): Promise<void> {
    externalIdOf(this.name, { ...request, format: request.file.format });
  }

  protected async makeImage(running: CloudUpload): Promise<UploadResult> {
    const { request, signal } = running;
    const { uploadId, imageName, file, shared = false } = request;
    const externalId = externalIdOf(this.name, { ...request, format: file.format });
    // Keep a finished image, and a shared upload, which other processes may be finishing.
    running.cleanUp = async (cleanup) => (shared ? undefined : this.#uploads.remove(uploadId, cleanup));
    await this.#latest.read(imageName, file.format, signal);
    await this.#uploads.make(running, externalId);
    await this.#latest.point(imageName, file.format, signal);
    const stored = await this.#store.head(this.#store.keys.image(externalId), signal);
    return { externalId, ...(stored && { reported: { 's3-etag': stored.etag.replaceAll('"', '') } }) };
  }

  /** Moves the pointer first and removes the manifest last, so that a second call can finish the work. */
  protected async removeImage(
    { externalId, native }: CloudImage<StoredImage | undefined>,
    signal: AbortSignal,
  ): Promise<void> {
    if (native === undefined) return;
    const { 'image-name': imageName, 'upload-id': uploadId, format } = native.manifest;
    await this.#latest.point(imageName, format, signal, externalId);
    await this.#uploads.removeObject(externalId, uploadId, signal);
    await this.#store.remove(this.#store.keys.manifest(externalId), signal);
    await this.#latest.point(imageName, format, signal); // Another process may have moved the pointer back.
  }

  protected override async removeUpload(uploadId: string, signal: AbortSignal): Promise<void> {
    await this.#uploads.remove(uploadId, signal);
    await super.removeUpload(uploadId, signal);
  }

  protected override async listParts(signal: AbortSignal): Promise<readonly UploadPart[]> {
    return await this.#uploads.listParts(signal);
  }

  /**
   * Downloads an image to a file.
   *
   * @throws CloudError, ImageError `image-not-found`
   */
  async download(externalId: string, path: string, options: OperationOptions = {}): Promise<void> {
    const manifest = await this.#existing(externalId, signalOf(options));
    await download({
      ...options,
      store: this.#store,
      key: this.#store.keys.image(externalId),
      manifest,
      path,
    });
  }

  /** @throws CloudError, ImageError `image-not-found` */
  async getAttestations(
    externalId: string,
    options: OperationOptions = {},
  ): Promise<readonly AttestationDocument[]> {
    const signal = signalOf(options);
    await this.#existing(externalId, signal);
    return await this.#uploads.attestations.read(externalId, signal);
  }

  /** @throws CloudError, ImageError `image-not-found` */
  async addAttestations(
    externalId: string,
    documents: readonly AttestationDocument[],
    options: OperationOptions = {},
  ): Promise<void> {
    for (const { name } of documents) checkAttestationName(name);
    const { 'upload-id': uploadId } = await this.#existing(externalId, signalOf(options));
    await this.inTurn(uploadId, options, async (signal) => {
      await this.#existing(externalId, signal); // An earlier operation may have deleted the image.
      await this.#uploads.attestations.write(externalId, documents, signal);
    });
  }

  async *diagnose(options: OperationOptions = {}): AsyncIterable<CheckResult> {
    const store = new ObjectStore({ ...this.#options, attempts: 1 });
    try {
      yield* diagnoseBucket(store, signalOf(options));
    } finally {
      store.close();
    }
  }

  override close(): void {
    this.#store.close();
  }

  /** Reads the manifest of an image. @throws CloudError, ImageError `image-not-found` */
  async #existing(externalId: string, signal: AbortSignal): Promise<DirectoryManifest> {
    const manifest = (await this.getImage(externalId, signal))?.native?.manifest;
    if (manifest === undefined) throw noImage(this.#store.bucket, externalId);
    return manifest;
  }
}
