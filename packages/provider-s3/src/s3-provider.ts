import { stat } from 'node:fs/promises';
import {
  type CandidateOptions,
  type CheckResult,
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
  byBuild,
  cleanUpAfter,
  DamagedRecord,
  type DatedImage,
  type DirectoryManifest,
  formatRow,
  imageIdFault,
  MANIFEST,
  Mutex,
  RecordType,
  signalOf,
  steadyProgress,
  Turns,
  toCandidate,
  toProviderImage,
} from '@nodepool-builder/image-builder/module-kit';
import { download } from './download.ts';
import {
  abortMultiparts,
  isOpen,
  listMultiparts,
  type MultipartUpload,
  sendParts,
  startMultipart,
} from './multipart-upload.ts';
import { ObjectStore, type StoredObject, type StoreOptions } from './object-store.ts';
import type { S3Entry } from './s3-settings.ts';

/** Manifests that are read at a time. */
const READS = 16;

const TEXT = { type: 'string', minLength: 1 } as const;

/** An upload that has begun, in an object of its own: written before anything else of it, and removed last. */
const INTENT = new RecordType({
  type: 'object',
  required: ['upload-id', 'external-id', 'begun'],
  properties: {
    'upload-id': TEXT,
    'external-id': TEXT,
    begun: TEXT,
    'multipart-id': { ...TEXT, description: 'Id of the multipart upload, once it is known.' },
  },
});

type Intent = ReturnType<typeof INTENT.parse>;

/** An image in the bucket. */
interface Entry {
  readonly externalId: string;
  readonly manifest: DirectoryManifest;
  /** Whether its object has the size in the manifest. */
  readonly isWhole: boolean;
}

export interface S3ProviderOptions extends StoreOptions {
  readonly entry: S3Entry;
  /** Accepted formats, the preferred one first. */
  readonly formats: readonly ImageFormat[];
  readonly logger: Logger;
}

/**
 * A provider that keeps images in a bucket, as the provider `directory` does in a directory. An image is the object
 * `<image-name>-<image-id>.<extension>` (which is its external id), `<that>.json` is its manifest, and
 * `<image-name>-latest.<extension>.json` has the manifest and the key of the one that was built last.
 *
 * The manifest is written after the object, and only an object with a manifest is an image. Objects without our manifest
 * are never touched.
 */
export class S3Provider implements ImageProvider, Disposable {
  readonly name: string;
  readonly formats: readonly ImageFormat[];
  readonly #options: S3ProviderOptions;
  readonly #store: ObjectStore;
  readonly #limit: BandwidthLimit | undefined;
  readonly #turns = new Turns();
  /** Pointers are set one after the other: two uploads that end together must leave the newer one as `latest`. */
  readonly #pointing = new Mutex();
  /** Manifests that were read, by their ETag. */
  readonly #manifests = new Map<string, DirectoryManifest>();

  constructor(options: S3ProviderOptions) {
    const { entry, formats } = options;
    this.name = entry.name;
    this.formats = formats;
    this.#options = options;
    this.#store = new ObjectStore(options);
    const limit = entry['bandwidth-limit'];
    this.#limit = limit === undefined ? undefined : new BandwidthLimit(limit);
  }

  /** @throws CloudError, ImageError `provider-refused` */
  async upload(request: UploadRequest, options: OperationOptions = {}): Promise<UploadResult> {
    const externalId = this.#fileName(request);
    return await this.#turns.run(externalId, options, async (signal) => {
      const onProgress = steadyProgress(options.onProgress ?? (() => {}));
      try {
        await this.#place(request, externalId, signal, onProgress);
      } catch (error) {
        const failed = {
          provider: this.name,
          imageId: request.imageId,
          logger: this.#options.logger,
          signal,
        };
        throw await cleanUpAfter(error, failed, (cleanup) => this.#removeUpload(request.uploadId, cleanup));
      }
      await this.#point(request.imageName, request.file.format, signal);
      onProgress({ done: 1, total: 1 });
      return { externalId };
    });
  }

  /** @throws CloudError */
  async discard(uploadId: string, options: OperationOptions = {}): Promise<void> {
    const signal = signalOf(options);
    await this.#removeUpload(uploadId, signal);
    for (const { externalId, manifest } of await this.#entries(signal)) {
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
      const manifest = await this.#manifest(externalId, signal);
      if (manifest === undefined) {
        if ((await this.#store.head(this.#key(externalId), signal)) === undefined) return;
        throw this.#notOurs(externalId);
      }
      // The pointer moves first, and the manifest goes last: a second call finishes the work.
      await this.#point(manifest['image-name'], manifest.format, signal, externalId);
      await this.#store.remove(this.#key(externalId), signal);
      await this.#store.remove(this.#manifestKey(externalId), signal);
    });
  }

  /** @throws CloudError */
  async list(options: OperationOptions = {}): Promise<readonly ProviderImage[]> {
    return (await this.#whole(signalOf(options))).map(toProviderImage);
  }

  /** @throws CloudError */
  async candidates(_filter: ImageFilter, options: CandidateOptions = {}): Promise<readonly ImageCandidate[]> {
    return (await this.#whole(signalOf(options))).map(toCandidate);
  }

  /**
   * Downloads an image to a file.
   *
   * @throws CloudError, ImageError `image-not-found`
   */
  async download(externalId: string, path: string, options: OperationOptions = {}): Promise<void> {
    const manifest = await this.#manifest(externalId, signalOf(options));
    if (manifest === undefined) {
      const reason = `${this.#store.bucket} has no image ${JSON.stringify(externalId)}; list shows the ids there are`;
      throw new ImageError('image-not-found', reason);
    }
    await download({ ...options, store: this.#store, key: this.#key(externalId), manifest, path });
  }

  /** @throws CloudError */
  async partialUploads(options: OperationOptions = {}): Promise<readonly PartialUpload[]> {
    const signal = signalOf(options);
    const partial: PartialUpload[] = [];
    for (const object of await this.#store.list(this.#intentKey(''), signal)) {
      const intent = await this.#intent(object.key, signal);
      if (intent !== undefined) partial.push(this.#partialUpload(object, intent));
    }
    return partial;
  }

  async *diagnose(options: OperationOptions = {}): AsyncIterable<CheckResult> {
    const signal = signalOf(options);
    const subject = `bucket ${this.#store.bucket} of provider ${this.name}`;
    const listed = await attempt(subject, signal, async () => await this.#whole(signal));
    if (listed.problem) {
      yield listed.problem;
      return;
    }
    yield { subject, state: 'ok', finding: `can be listed, and has ${listed.value.length} images` };
    const parts = await attempt(`unfinished uploads in ${subject}`, signal, async () => {
      await listMultiparts(this.#store, this.#key(''), signal);
    });
    if (parts.problem) yield parts.problem;
  }

  /** Aborts running requests. */
  close(): void {
    this.#store.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  /** Makes the object of an image and its manifest, unless they are there. */
  async #place(
    request: UploadRequest,
    externalId: string,
    signal: AbortSignal,
    onProgress: MultipartUpload['onProgress'],
  ): Promise<void> {
    const { uploadId, imageId, imageName, file, builtAt, metadata = {} } = request;
    const existing = await this.#refuseForeign(request, externalId, signal);
    if (existing?.manifest['upload-id'] === uploadId && existing.isWhole) {
      await this.#end(uploadId, externalId, signal);
      return;
    }
    const upload: MultipartUpload = {
      store: this.#store,
      key: this.#key(externalId),
      file,
      concurrency: this.#options.entry['upload-parts'],
      limit: this.#limit,
      signal,
      onProgress,
    };
    const built = builtAt ?? (await stat(file.path)).mtime;
    const id = await this.#begin(request, externalId, upload);
    // Another image under this name loses its manifest first: no image ever has the manifest of other bytes.
    if (existing !== undefined) await this.#store.remove(this.#manifestKey(externalId), signal);
    const checksums = await sendParts(upload, id);
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
    await this.#store.write(this.#manifestKey(externalId), MANIFEST.text(manifest), signal);
    await this.#end(uploadId, externalId, signal);
  }

  /** Ends a finished upload. A request to start it, whose answer was lost, may have left a multipart upload of its own. */
  async #end(uploadId: string, externalId: string, signal: AbortSignal): Promise<void> {
    await abortMultiparts(this.#store, this.#key(externalId), signal);
    await this.#store.remove(this.#intentKey(uploadId), signal);
  }

  /** Continues the multipart upload of an earlier attempt, or begins one. @returns its id in the object store */
  async #begin(request: UploadRequest, externalId: string, upload: MultipartUpload): Promise<string> {
    const { uploadId } = request;
    const { signal } = upload;
    const key = this.#intentKey(uploadId);
    const earlier = await this.#intent(key, signal);
    const known = earlier?.['multipart-id'];
    if (earlier?.['external-id'] === externalId && known !== undefined && (await isOpen(upload, known))) {
      return known;
    }
    if (earlier !== undefined) await this.#removeUpload(uploadId, signal);
    const intent: Intent = {
      'upload-id': uploadId,
      'external-id': externalId,
      begun: new Date().toISOString(),
    };
    await this.#store.write(key, INTENT.text(intent), signal);
    const id = await startMultipart(upload);
    await this.#store.write(key, INTENT.text({ ...intent, 'multipart-id': id }), signal);
    return id;
  }

  /**
   * Refuses to replace an object of another owner or of another image.
   *
   * @returns the image that has the name
   */
  async #refuseForeign(
    { imageId, imageName }: UploadRequest,
    externalId: string,
    signal: AbortSignal,
  ): Promise<Entry | undefined> {
    const manifest = await this.#manifest(externalId, signal);
    const object = await this.#store.head(this.#key(externalId), signal);
    if (manifest === undefined) {
      if (object === undefined || (await this.#isIntended(externalId, signal))) return undefined;
      throw this.#notOurs(externalId);
    }
    if (manifest['image-id'] === imageId && manifest['image-name'] === imageName) {
      return { externalId, manifest, isWhole: object?.size === manifest.size };
    }
    const { 'image-id': otherId, 'image-name': otherName } = manifest;
    throw new ImageError(
      'provider-refused',
      `${this.#key(externalId)} is image ${otherId} of ${otherName} already; delete that one or use another image-id`,
    );
  }

  /** Whether an unfinished upload, of whatever process, is to make this image. */
  async #isIntended(externalId: string, signal: AbortSignal): Promise<boolean> {
    for (const { key } of await this.#store.list(this.#intentKey(''), signal)) {
      if ((await this.#intent(key, signal))?.['external-id'] === externalId) return true;
    }
    return false;
  }

  /** Removes what an unfinished upload has left. A finished image stays. */
  async #removeUpload(uploadId: string, signal: AbortSignal): Promise<void> {
    const key = this.#intentKey(uploadId);
    const intent = await this.#intent(key, signal);
    if (intent === undefined) return;
    const { 'external-id': externalId } = intent;
    await abortMultiparts(this.#store, this.#key(externalId), signal);
    // Without a manifest, the object is the one of this upload.
    if ((await this.#manifest(externalId, signal)) === undefined) {
      await this.#store.remove(this.#key(externalId), signal);
    }
    await this.#store.remove(key, signal);
  }

  #partialUpload(object: StoredObject, intent: Intent): PartialUpload {
    const { 'upload-id': uploadId, 'external-id': externalId } = intent;
    return {
      uploadId,
      subject: `object ${this.#key(externalId)} (unfinished)`,
      changedAt: object.changedAt,
      remove: async (options = {}) => {
        const signal = signalOf(options);
        const now = await this.#store.head(object.key, signal);
        if (now?.etag !== object.etag) return false;
        await this.#removeUpload(uploadId, signal);
        return true;
      },
    };
  }

  /** Writes the key and the manifest of the image that was built last to `<image-name>-latest.<extension>.json`. */
  async #point(imageName: string, format: ImageFormat, signal: AbortSignal, without?: string): Promise<void> {
    await this.#pointing.run(async () => {
      const images = (await this.#whole(signal)).filter(
        ({ externalId, manifest }) =>
          externalId !== without && manifest['image-name'] === imageName && manifest.format === format,
      );
      const [newest] = images.toSorted(byBuild(images, describe, Date.now()));
      const key = this.#manifestKey(`${imageName}-latest.${formatRow(format).extension}`);
      const before = await this.#store.read(key, signal);
      if (before !== undefined && !isPointer(before)) throw this.#notOurs(key);
      const text =
        newest && `${JSON.stringify({ 'external-id': newest.externalId, ...newest.manifest }, null, 2)}\n`;
      if (text === before) return;
      await (text === undefined ? this.#store.remove(key, signal) : this.#store.write(key, text, signal));
    });
  }

  async #whole(signal: AbortSignal): Promise<readonly Entry[]> {
    return (await this.#entries(signal)).filter(({ isWhole }) => isWhole);
  }

  /** All manifests of ours. */
  async #entries(signal: AbortSignal): Promise<readonly Entry[]> {
    const objects = new Map((await this.#store.list(this.#key(''), signal)).map((one) => [one.key, one]));
    const found: Entry[] = [];
    const rest = objects.values();
    const read = async (): Promise<void> => {
      for (const { key, etag } of rest) {
        const externalId = this.#externalId(key);
        if (externalId === undefined) continue;
        const manifest = this.#manifests.get(etag) ?? (await this.#manifest(externalId, signal));
        if (manifest === undefined) continue;
        this.#manifests.set(etag, manifest);
        const { size } = objects.get(this.#key(externalId)) ?? {};
        found.push({ externalId, manifest, isWhole: size === manifest.size });
      }
    };
    await Promise.all(Array.from({ length: READS }, read));
    const etags = new Set([...objects.values()].map(({ etag }) => etag));
    for (const etag of this.#manifests.keys()) if (!etags.has(etag)) this.#manifests.delete(etag);
    return found.toSorted((one, other) => (one.externalId < other.externalId ? -1 : 1));
  }

  /** The manifest of an image; undefined if there is none, or if the object is not a manifest of ours. */
  async #manifest(externalId: string, signal: AbortSignal): Promise<DirectoryManifest | undefined> {
    const key = this.#manifestKey(externalId);
    const text = await this.#store.read(key, signal);
    if (text === undefined || isPointer(text)) return undefined;
    try {
      return MANIFEST.parse(text, key);
    } catch (error) {
      if (error instanceof DamagedRecord) return undefined;
      throw error;
    }
  }

  async #intent(key: string, signal: AbortSignal): Promise<Intent | undefined> {
    const text = await this.#store.read(key, signal);
    try {
      return text === undefined ? undefined : INTENT.parse(text, key);
    } catch (error) {
      if (!(error instanceof DamagedRecord)) throw error;
      this.#options.logger.warn(`provider ${this.name}: ${error.message}; it is left alone`);
      return undefined;
    }
  }

  #fileName({ imageName, imageId, file }: UploadRequest): string {
    const name = `${imageName}-${imageId}.${formatRow(file.format).extension}`;
    const reason =
      imageId === 'latest' ? 'is the name of the pointer to the latest image' : imageIdFault(name);
    if (reason === undefined) return name;
    throw new ImageError(
      'provider-refused',
      `provider ${this.name} cannot name an object ${JSON.stringify(name.slice(0, 80))}: it ${reason}; rename the image under providers[].images`,
    );
  }

  #key(externalId: string): string {
    return `${this.#options.entry.prefix ?? ''}${externalId}`;
  }

  #manifestKey(externalId: string): string {
    return `${this.#key(externalId)}.json`;
  }

  #intentKey(uploadId: string): string {
    return `${this.#key('.nodepool-builder/')}${encodeURIComponent(uploadId)}${uploadId && '.json'}`;
  }

  /** The image that a key is the manifest of; undefined for other keys. */
  #externalId(key: string): string | undefined {
    const name = key.slice(this.#key('').length);
    return name.endsWith('.json') && !name.includes('/') ? name.slice(0, -'.json'.length) : undefined;
  }

  #notOurs(externalId: string): ImageError {
    return new ImageError(
      'provider-refused',
      `${this.#store.bucket}/${this.#key(externalId)} was not made by this software, and is not touched; move it away or rename the image under providers[].images`,
    );
  }
}

function describe({ manifest }: Entry): DatedImage {
  return { imageId: manifest['image-id'], builtAt: Date.parse(manifest.built) || undefined };
}

function isPointer(text: string): boolean {
  return /^\{\s*"external-id":/.test(text);
}
