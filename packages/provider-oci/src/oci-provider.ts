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
  byBuild,
  type CheckOptions,
  CloudError,
  cleanUpAfter,
  Mutex,
  signalOf,
  steadyProgress,
  Turns,
} from '@nodepool-builder/image-builder/module-kit';
import { cancelUpload, tryDeletion, tryUpload } from './blob-upload.ts';
import { pushImage } from './container-image.ts';
import {
  digestsBelow,
  latestTag,
  type OciImage,
  readImage,
  tagOf,
  toCandidate,
  toProviderImage,
} from './image-manifest.ts';
import { type OciEntry, parseRepository } from './oci-settings.ts';
import { type UploadRecord, UploadRecords } from './oci-upload.ts';
import { Registry, type RegistryOptions, type StoredManifest } from './registry.ts';
import { DeletionForbidden } from './registry-error.ts';

/** Manifests that are read at a time. */
const READS = 8;

/** How often the tag `latest` is set in one go. Only a registry that answers from a cache needs as many. */
const ROUNDS = 10;

/** A tag (OCI distribution specification, "Pulling manifests"). */
const TAG = /^\w[\w.-]{0,127}$/;

export interface OciProviderOptions {
  readonly entry: OciEntry;
  /** Accepted formats, the preferred one first. */
  readonly formats: readonly ImageFormat[];
  /** Directory for records of unfinished uploads. Absent: this process uploads nothing. */
  readonly directory?: string | undefined;
  readonly registry: Pick<RegistryOptions, 'endpoint' | 'credentials' | 'proxyEnv' | 'retry' | 'onTask'>;
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
  readonly #turns = new Turns();
  /** `latest` is set by one after the other: two uploads that end together must leave the newer one there. */
  readonly #latest = new Mutex();

  constructor(options: OciProviderOptions) {
    const { entry, formats } = options;
    this.name = entry.name;
    this.formats = formats;
    this.#options = options;
    this.#registry = this.#connect();
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
        if (!isDone) {
          const registry = this.#registry;
          const { entry } = this.#options;
          const upload = { registry, entry, request, records, limit: this.#limit, onProgress, signal };
          const { type, text } = await pushImage(upload, await records.begin(request));
          await registry.putManifest(tag, type, text, signal);
        }
        await this.#point(request.imageName, signal);
        if (!isDone && existing !== undefined) await this.#removeReplaced(existing, signal);
        await records.remove(uploadId);
        onProgress({ done: 1, total: 1 });
        return { externalId: this.#externalId(tag) };
      } catch (error) {
        // The image of a shared upload may be that of another process.
        const failed = {
          provider: this.name,
          imageId: request.imageId,
          logger: this.#options.logger,
          signal,
        };
        throw await cleanUpAfter(error, failed, (cleanup) =>
          shared ? this.#removePartial(uploadId, cleanup) : this.#remove(uploadId, cleanup),
        );
      }
    });
  }

  /** @throws CloudError */
  async discard(uploadId: string, options: OperationOptions = {}): Promise<void> {
    await this.#turns.run(uploadId, options, async (signal) => await this.#remove(uploadId, signal));
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
    await this.#removeImage(image, signal);
  }

  /** @throws CloudError */
  async list(options: OperationOptions = {}): Promise<readonly ProviderImage[]> {
    const images = await this.#images(signalOf(options));
    return images.map((image) => toProviderImage(this.#externalId(image.tag), image));
  }

  /** @throws CloudError */
  async candidates(_filter: ImageFilter, options: CandidateOptions = {}): Promise<readonly ImageCandidate[]> {
    const images = await this.#images(signalOf(options));
    return images.map((image) => toCandidate(this.#externalId(image.tag), image));
  }

  /** @throws CloudError */
  async partialUploads(): Promise<readonly PartialUpload[]> {
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
      state: 'ok',
      finding: `${repository} has ${tags.value.length} ${tags.value.length === 1 ? 'tag' : 'tags'}`,
    };
    const rights = `permission to push of provider ${this.name}`;
    const pushed = await attempt(rights, signal, async () => await tryUpload(registry, signal));
    yield pushed.problem ?? { subject: rights, state: 'ok', finding: `an upload to ${repository} can begin` };
    const deletions = `permission to delete of provider ${this.name}`;
    const deleted = await attempt(deletions, signal, async () => await tryDeletion(registry, signal));
    yield deleted.problem ?? { subject: deletions, state: 'ok', finding: `${repository} permits deletions` };
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
    if (latest !== undefined && readImage(this.name, pointer, latest) === undefined)
      throw this.#notOurs(pointer);
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

  /** Points the tag `latest` of an image at the build that is the last one. Deleting a manifest removes the tag with it. */
  async #point(imageName: string, signal: AbortSignal, without?: OciImage): Promise<void> {
    await this.#latest.run(async () => {
      const pointer = latestTag(imageName);
      // Repeated after each change: another process may have changed the tag without seeing this image.
      for (let round = 0; round < ROUNDS; round += 1) {
        const images = (await this.#images(signal, tagOf({ imageName, imageId: '' }))).filter(
          (image) => image.imageName === imageName && image.tag !== without?.tag,
        );
        const [newest] = images.toSorted(byBuild(images, dated, Date.now()));
        if (newest === undefined) return;
        const latest = await this.#registry.manifest(pointer, signal);
        if (latest?.digest === newest.manifest.digest) return;
        if (latest !== undefined && readImage(this.name, pointer, latest) === undefined) return;
        await this.#registry.putManifest(pointer, newest.manifest.type, newest.manifest.text, signal);
      }
      this.#options.logger.warn(
        `provider ${this.name}: the registry still names another image as ${pointer} after ${ROUNDS} changes`,
      );
    });
  }

  /** Removes an image whose tag names another one now. Nobody sees it, so it may stay where deletions are forbidden. */
  async #removeReplaced(image: OciImage, signal: AbortSignal): Promise<void> {
    try {
      await this.#removeManifests(image, signal);
    } catch (error) {
      if (!(error instanceof DeletionForbidden)) throw error;
      this.#options.logger.warn(`${error.message}; the image that was replaced stays without a tag`);
    }
  }

  async #removeImage(image: OciImage, signal: AbortSignal): Promise<void> {
    await this.#point(image.imageName, signal, image);
    await this.#removeManifests(image, signal);
    await this.#point(image.imageName, signal); // another process may have moved it back
  }

  /** Removes a manifest with all its tags, and the manifests that it alone named. */
  async #removeManifests({ manifest }: OciImage, signal: AbortSignal): Promise<void> {
    const below = await this.#digestsBelow([manifest], signal);
    await this.#registry.deleteManifest(manifest.digest, signal);
    await this.#removeUnnamed([...below], signal);
  }

  /** Removes manifests that no tag of the repository names, neither directly nor by an index. */
  async #removeUnnamed(digests: readonly string[], signal: AbortSignal): Promise<void> {
    if (digests.length === 0) return;
    const tagged = (await this.#tagged(signal)).map(({ manifest }) => manifest);
    const named = await this.#digestsBelow(tagged, signal);
    for (const { digest } of tagged) named.add(digest);
    for (const digest of digests) {
      if (!named.has(digest)) await this.#registry.deleteManifest(digest, signal);
    }
  }

  async #digestsBelow(manifests: readonly StoredManifest[], signal: AbortSignal): Promise<Set<string>> {
    return await digestsBelow(manifests, async (digest) => await this.#registry.manifest(digest, signal));
  }

  /** Images of this provider, by their tags. @param prefix of the tags; default: all */
  async #images(signal: AbortSignal, prefix?: string): Promise<OciImage[]> {
    return (await this.#tagged(signal, prefix)).flatMap(({ tag, manifest }) => {
      const image = readImage(this.name, tag, manifest);
      // `latest` has the manifest of an image with another tag.
      return image !== undefined && tagOf(image) === tag ? [image] : [];
    });
  }

  /** Tags of the repository, in their order, with their manifests. */
  async #tagged(
    signal: AbortSignal,
    prefix = '',
  ): Promise<{ readonly tag: string; readonly manifest: StoredManifest }[]> {
    const found: { readonly tag: string; readonly manifest: StoredManifest }[] = [];
    const rest = (await this.#registry.tags(signal)).filter((tag) => tag.startsWith(prefix)).values();
    const read = async (): Promise<void> => {
      for (const tag of rest) {
        const manifest = await this.#registry.manifest(tag, signal);
        if (manifest !== undefined) found.push({ tag, manifest });
      }
    };
    await Promise.all(Array.from({ length: READS }, read));
    return found.toSorted((one, other) => (one.tag < other.tag ? -1 : 1));
  }

  #records(): UploadRecords {
    const { directory, entry } = this.#options;
    if (directory !== undefined) return new UploadRecords(directory);
    throw new CloudError('bad-request', `provider ${entry.name}`, 'this program uploads nothing');
  }

  /** Removes everything of an upload. Blobs without a manifest are left to the garbage collection of the registry. */
  async #remove(uploadId: string, signal: AbortSignal): Promise<void> {
    for (const image of await this.#images(signal)) {
      if (image.uploadId === uploadId) await this.#removeImage(image, signal);
    }
    if (this.#options.directory !== undefined) await this.#removePartial(uploadId, signal);
  }

  async #removePartial(uploadId: string, signal: AbortSignal): Promise<void> {
    const records = this.#records();
    const record = await records.read(uploadId);
    if (record?.location !== undefined) await cancelUpload(this.#registry, record.location, signal);
    await this.#removeUnnamed(record?.manifests ?? [], signal);
    await records.remove(uploadId);
  }

  #partialUpload({
    'upload-id': uploadId,
    'image-name': imageName,
    'image-id': imageId,
    changed,
  }: UploadRecord): PartialUpload {
    return {
      uploadId,
      subject: `upload of ${this.#externalId(tagOf({ imageName, imageId }))} (unfinished)`,
      changedAt: new Date(changed),
      remove: async (options = {}) =>
        await this.#turns.run(uploadId, options, async (signal) => {
          if ((await this.#records().read(uploadId))?.changed !== changed) return false;
          await this.#removePartial(uploadId, signal);
          return true;
        }),
    };
  }
}

function dated({ imageId, builtAt }: OciImage): {
  readonly imageId: string;
  readonly builtAt: number | undefined;
} {
  return { imageId, builtAt: builtAt?.getTime() };
}
