import { createHash } from 'node:crypto';
import type {
  CandidateOptions,
  CheckResult,
  ImageCandidate,
  ImageFilter,
  ImageFormat,
  ImageProvider,
  Logger,
  OperationOptions,
  PartialUpload,
  ProviderImage,
  UploadRequest,
  UploadResult,
} from '@nodepool-builder/image-builder';
import { ImageError } from '@nodepool-builder/image-builder';
import {
  attempt,
  BandwidthLimit,
  type CheckOptions,
  CloudError,
  cleanUpAfter,
  type DiscardOptions,
  type ImageKey,
  KeyedQueue,
  signalOf,
  steadyProgress,
} from '@nodepool-builder/image-builder/module-kit';
import { tryDeletion, tryUpload } from './blob-upload.ts';
import { pushImage } from './container-image.ts';
import {
  latestTag,
  type OciImage,
  readImage,
  tagOf,
  toCandidate,
  toProviderImage,
} from './image-manifest.ts';
import { type OciEntry, parseRepository } from './oci-settings.ts';
import { cancelBlobs, imageOf, type UploadRecord, UploadRecords } from './oci-upload.ts';
import { Registry, type RegistryOptions } from './registry.ts';
import { RegistryImages } from './registry-images.ts';

/** A tag (OCI distribution specification, "Pulling manifests"). */
const TAG = /^\w[\w.-]{0,127}$/;

export interface OciProviderOptions {
  readonly entry: OciEntry;
  /** Accepted formats, the preferred one first. */
  readonly formats: readonly ImageFormat[];
  /** Directory for records of unfinished uploads. Absent: this process uploads nothing. */
  readonly directory?: string | undefined;
  readonly registry: Pick<RegistryOptions, 'endpoint' | 'credentials' | 'retry' | 'onTask'>;
  readonly logger: Logger;
}

/**
 * A provider that keeps images in a repository of an OCI registry. An image is the tag `<image-name>-<image-id>`; with its
 * repository, this is the external id. The tag `<image-name>-latest` names the image that was built last.
 *
 * The blobs come first, then the manifest with its tag: no tag names an incomplete image. Manifests without our annotations
 * are never touched.
 */
export class OciProvider implements ImageProvider {
  readonly name: string;
  readonly formats: readonly ImageFormat[];
  readonly #options: OciProviderOptions;
  readonly #registry: Registry;
  readonly #limit: BandwidthLimit | undefined;
  readonly #images: RegistryImages;
  readonly #turns = new KeyedQueue();

  constructor(options: OciProviderOptions) {
    const { entry, formats } = options;
    this.name = entry.name;
    this.formats = formats;
    this.#options = options;
    this.#registry = this.#connect();
    this.#images = new RegistryImages(entry.name, this.#registry, options.logger);
    const limit = entry['bandwidth-limit'];
    this.#limit = limit === undefined ? undefined : new BandwidthLimit(limit);
  }

  /** @throws CloudError, ImageError */
  async upload(request: UploadRequest, options: OperationOptions = {}): Promise<UploadResult> {
    const { uploadId, shared = false } = request;
    return await this.#turns.run(uploadId, options, async (signal) => {
      const onProgress = steadyProgress(options.onProgress ?? (() => {}));
      const tag = this.#checkTag(request);
      const records = this.#records();
      try {
        const existing = await this.#refuseForeign(request, tag, signal);
        const isDone = existing?.uploadId === uploadId || (shared && existing !== undefined);
        let digest = existing?.manifest.digest;
        if (!isDone) {
          const registry = this.#registry;
          const { entry } = this.#options;
          const upload = { registry, entry, request, records, limit: this.#limit, onProgress, signal };
          const record = await records.begin(request, existing?.manifest.digest);
          const manifest = await pushImage(upload, record);
          await this.#images.put(tag, manifest, signal);
          digest = `sha256:${createHash('sha256').update(manifest.text).digest('hex')}`;
        }
        await this.#images.point(request.imageName, signal);
        await this.#removeReplaced(await records.read(uploadId), signal);
        await records.remove(uploadId);
        onProgress({ done: 1, total: 1 });
        return { externalId: this.#externalId(tag), ...(digest && { reported: { 'oci-manifest': digest } }) };
      } catch (error) {
        // The image of a shared upload may be that of another process.
        const failed = {
          provider: this.name,
          imageId: request.imageId,
          logger: this.#options.logger,
          signal,
        };
        throw await cleanUpAfter(error, failed, (cleanup) =>
          shared ? this.#removePartial(uploadId, cleanup) : this.#remove(uploadId, cleanup, request),
        );
      }
    });
  }

  /** @throws CloudError */
  async discard(uploadId: string, options: DiscardOptions = {}): Promise<void> {
    await this.#turns.run(
      uploadId,
      options,
      async (signal) => await this.#remove(uploadId, signal, options.image),
    );
  }

  /** @throws CloudError */
  async delete(externalId: string, options: OperationOptions = {}): Promise<void> {
    const signal = signalOf(options);
    const prefix = this.#externalId('');
    const tag = externalId.slice(prefix.length);
    if (!externalId.startsWith(prefix) || !TAG.test(tag)) {
      const reason = `${JSON.stringify(externalId)} is not a tag of ${this.#options.entry.repository}; list shows the ids`;
      throw new CloudError('bad-request', `provider ${this.name}`, reason);
    }
    const manifest = await this.#registry.manifest(tag, signal);
    if (manifest === undefined) return;
    const image = readImage(this.name, tag, manifest);
    if (image === undefined || tagOf(image) !== tag) throw this.#notOurs(tag);
    await this.#images.remove(image, signal);
  }

  /** @throws CloudError */
  async list(options: OperationOptions = {}): Promise<readonly ProviderImage[]> {
    const images = await this.#images.all(signalOf(options));
    return images.map((image) => toProviderImage(this.#externalId(image.tag), image));
  }

  /** @throws CloudError */
  async findImages(_filter: ImageFilter, options: CandidateOptions = {}): Promise<readonly ImageCandidate[]> {
    const images = await this.#images.all(signalOf(options));
    return images.map((image) => toCandidate(this.#externalId(image.tag), image));
  }

  /** @throws CloudError */
  async listPartialUploads(): Promise<readonly PartialUpload[]> {
    const { directory } = this.#options;
    if (directory === undefined) return [];
    const records = await new UploadRecords(directory).all();
    return records.map((record) => this.#partialUpload(record));
  }

  async *diagnose(options: CheckOptions = {}): AsyncIterable<CheckResult> {
    const signal = signalOf(options);
    const registry = this.#connect({ attempts: 1 });
    const subject = `repository of provider ${this.name}`;
    const { repository } = this.#options.entry;
    const tags = await attempt(subject, signal, async () => await registry.tags(signal));
    if (tags.problem) {
      yield tags.problem;
      return;
    }
    yield {
      subject,
      status: 'ok',
      message: `${repository} has ${tags.value.length} ${tags.value.length === 1 ? 'tag' : 'tags'}`,
    };
    const rights = `permission to push of provider ${this.name}`;
    const pushed = await attempt(rights, signal, async () => await tryUpload(registry, signal));
    yield pushed.problem ?? {
      subject: rights,
      status: 'ok',
      message: `an upload to ${repository} can begin`,
    };
    const deletions = `permission to delete of provider ${this.name}`;
    const deleted = await attempt(deletions, signal, async () => await tryDeletion(registry, signal));
    yield deleted.problem ?? { subject: deletions, status: 'ok', message: `${repository} permits deletions` };
  }

  #connect(retry: RegistryOptions['retry'] = this.#options.registry.retry): Registry {
    const { entry, registry } = this.#options;
    const repository = parseRepository(entry.repository);
    if (repository === undefined) {
      const reason = `"${entry.repository}" is not the name of a repository with its registry`;
      throw new CloudError('bad-request', `provider ${entry.name}`, reason);
    }
    return new Registry({ ...registry, retry, name: entry.name, repository, caFile: entry['ca-file'] });
  }

  #externalId(tag: string): string {
    return `${this.#options.entry.repository}:${tag}`;
  }

  #checkTag(request: UploadRequest): string {
    const tag = tagOf(request);
    const reason =
      request.imageId === 'latest'
        ? 'is the tag of the latest image'
        : !TAG.test(tag) &&
          'must begin with a letter, a digit or "_", and have at most 128 of these, "." and "-"';
    if (reason === false) return tag;
    throw new ImageError(
      'provider-refused',
      `provider ${this.name} cannot use the tag ${JSON.stringify(tag.slice(0, 130))}: it ${reason}; rename the image under providers[].images`,
    );
  }

  #notOurs(tag: string): ImageError {
    const reason = 'was not pushed by this provider, and is not touched';
    return new ImageError('provider-refused', `${this.#externalId(tag)} ${reason}; remove the tag by hand`);
  }

  /**
   * Refuses to replace a tag of another owner, or of another image: image `c` of `a-b` and image `b-c` of `a` have the same
   * tag.
   *
   * @returns the image that has the tag
   */
  async #refuseForeign(
    request: UploadRequest,
    tag: string,
    signal: AbortSignal,
  ): Promise<OciImage | undefined> {
    const { imageId, imageName } = request;
    const pointer = latestTag(imageName);
    const latest = await this.#registry.manifest(pointer, signal);
    if (latest !== undefined && !this.#images.isPointer(imageName, latest)) throw this.#notOurs(pointer);
    const manifest = await this.#registry.manifest(tag, signal);
    if (manifest === undefined) return undefined;
    const image = readImage(this.name, tag, manifest);
    if (image === undefined) throw this.#notOurs(tag);
    if (image.imageId === imageId && image.imageName === imageName) return image;
    throw new ImageError(
      'provider-refused',
      `${this.#externalId(tag)} is image ${image.imageId} of ${image.imageName} already; delete that one or use another image-id`,
    );
  }

  #records(): UploadRecords {
    const { directory, entry } = this.#options;
    if (directory !== undefined) return new UploadRecords(directory);
    throw new CloudError('bad-request', `provider ${entry.name}`, 'this program uploads nothing');
  }

  /**
   * Removes everything of an upload. Blobs without a manifest are left to the garbage collection of the registry.
   *
   * @param image as the caller knows it. Without it and without a record, all images are searched.
   */
  async #remove(uploadId: string, signal: AbortSignal, image?: ImageKey): Promise<void> {
    const isRecorded = this.#options.directory !== undefined;
    const record = isRecorded ? await this.#records().read(uploadId) : undefined;
    const tags = [image, record && imageOf(record)].flatMap((key) => (key ? [tagOf(key)] : []));
    const images =
      tags.length === 0
        ? await this.#images.all(signal)
        : await Promise.all([...new Set(tags)].map((tag) => this.#images.at(tag, signal)));
    for (const found of images) {
      if (found?.uploadId === uploadId) await this.#images.remove(found, signal);
    }
    if (isRecorded) await this.#removePartial(uploadId, signal);
  }

  async #removePartial(uploadId: string, signal: AbortSignal): Promise<void> {
    const records = this.#records();
    const record = await records.read(uploadId);
    if (record !== undefined) await cancelBlobs(this.#registry, record, signal);
    await this.#images.removeUnnamed(record?.manifests ?? [], signal);
    await this.#removeReplaced(record, signal);
    await records.remove(uploadId);
  }

  async #removeReplaced(record: UploadRecord | undefined, signal: AbortSignal): Promise<void> {
    for (const digest of record?.replaced ?? []) {
      await this.#images.removeReplaced(digest, imageOf(record as UploadRecord), signal);
    }
  }

  #partialUpload(record: UploadRecord): PartialUpload {
    const { 'upload-id': uploadId, changed } = record;
    const tag = tagOf(imageOf(record));
    return {
      uploadId,
      subject: `upload of ${this.#externalId(tag)} (unfinished)`,
      changedAt: new Date(changed),
      remove: async (options = {}) =>
        await this.#turns.run(uploadId, options, async (signal) => {
          if ((await this.#records().read(uploadId))?.changed !== changed) return false;
          // The process may have died after it had pushed the image, before `latest` was set.
          const image = await this.#images.at(tag, signal);
          if (image?.uploadId === uploadId) await this.#images.point(image.imageName, signal);
          await this.#removePartial(uploadId, signal);
          return true;
        }),
    };
  }
}
