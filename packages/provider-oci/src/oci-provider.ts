import { createHash } from 'node:crypto';
import type { CheckOptions, CheckResult, ImageKey, UploadResult } from '@nodepool-builder/image-builder';
import { checkImageName, foreignImage } from '@nodepool-builder/image-builder/internal';
import {
  type CloudImage,
  CloudImages,
  type CloudImagesOptions,
  type CloudUpload,
  cloudError,
  signalOf,
  type UploadPart,
} from '@nodepool-builder/image-builder/plugin';
import { pushImage } from './container-image.ts';
import { diagnoseRegistry } from './diagnose-oci.ts';
import { describeImage, type OciImage, readImage, tagOf } from './image-manifest.ts';
import type { OciEntry } from './oci-settings.ts';
import { beginRecord, cancelBlobs, imageOf, UPLOAD, type UploadRecord } from './oci-upload.ts';
import { Registry, type RegistryOptions } from './registry.ts';
import { RegistryImages } from './registry-images.ts';

/** Pattern of a tag (OCI distribution specification, "Pulling manifests"). */
const TAG = /^\w[\w.-]{0,127}$/;

export interface OciProviderOptions extends CloudImagesOptions<OciEntry> {
  readonly registry: Omit<RegistryOptions, 'name' | 'caFile'>;
}

/**
 * A provider that stores images in a repository of an OCI registry. An image has the tag `<image-name>-<image-id>`. The
 * repository and the tag are its external id. The tag `<image-name>-latest` points to the latest build.
 *
 * Blobs are pushed before the manifest with its tag, so that no tag refers to an incomplete image. Manifests without
 * our annotations are never changed.
 */
export class OciProvider extends CloudImages<OciEntry, OciImage | undefined, typeof UPLOAD> {
  readonly #registryOptions: OciProviderOptions['registry'];
  readonly #registry: Registry;
  readonly #images: RegistryImages;

  constructor(options: OciProviderOptions) {
    super(options, UPLOAD);
    this.#registryOptions = options.registry;
    this.#registry = this.#connect();
    this.#images = new RegistryImages(this.entry, this.#registry, this.logger, async (without) =>
      (await this.records.all()).flatMap((record) =>
        record['upload-id'] === without ? [] : (record.manifests ?? []),
      ),
    );
  }

  protected async listImages(signal: AbortSignal): Promise<readonly CloudImage<OciImage>[]> {
    return (await this.#images.all(signal)).map((image) =>
      describeImage(this.#images.externalId(image.tag), image),
    );
  }

  protected override async getImage(
    externalId: string,
    signal: AbortSignal,
  ): Promise<CloudImage<OciImage | undefined> | undefined> {
    const prefix = this.#images.externalId('');
    const tag = externalId.slice(prefix.length);
    if (!externalId.startsWith(prefix) || !TAG.test(tag)) {
      const reason = `${JSON.stringify(externalId)} is not a tag of ${this.entry.repository}; run list to see the ids`;
      throw cloudError('bad-request', `provider ${this.name}`, reason);
    }
    const manifest = await this.#registry.manifest(tag, signal);
    if (manifest === undefined) return undefined;
    const image = readImage(this.name, tag, manifest);
    // The tag `latest` refers to the manifest of an image, but is not the image itself.
    const isForeign = image === undefined || tagOf(image) !== tag;
    return isForeign ? foreignImage(externalId) : describeImage(externalId, image);
  }

  protected override async checkUpload({ request }: CloudUpload): Promise<void> {
    const tag = tagOf(request);
    if (request.imageId === 'latest') checkImageName(this.name, tag, 'is the tag of the latest build');
    if (TAG.test(tag)) return;
    const rule = 'must begin with a letter, a digit or "_", and have at most 128 of these, "." and "-"';
    checkImageName(this.name, tag, rule);
  }

  protected async makeImage(running: CloudUpload): Promise<UploadResult> {
    const { request, signal } = running;
    const { uploadId, shared = false } = request;
    // The image of a shared upload may belong to another process.
    if (shared) running.cleanUp = async (cleanup) => this.#removePartial(uploadId, cleanup);
    const externalId = this.#images.externalId(tagOf(request));
    return await this.inImageTurn(externalId, { signal }, () => this.#push(running));
  }

  async #push(running: CloudUpload): Promise<UploadResult> {
    const { request, signal } = running;
    const { uploadId, shared = false } = request;
    const tag = tagOf(request);
    const existing = await this.#images.refuseForeign(request, signal);
    const isDone = existing?.uploadId === uploadId || (shared && existing !== undefined);
    let digest = existing?.manifest.digest;
    if (!isDone) {
      const { entry, records } = this;
      const record = await beginRecord(records, request, digest);
      const upload = { ...running, registry: this.#registry, entry, records };
      const manifest = await pushImage(upload, record);
      await this.#images.put(tag, manifest, signal);
      digest = `sha256:${createHash('sha256').update(manifest.text).digest('hex')}`;
    }
    await this.#images.point(request.imageName, signal);
    await this.#removeReplaced(await this.records.read(uploadId), signal);
    return {
      externalId: this.#images.externalId(tag),
      ...(digest && { reported: { 'oci-manifest': digest } }),
    };
  }

  protected async removeImage(
    { native }: CloudImage<OciImage | undefined>,
    signal: AbortSignal,
  ): Promise<void> {
    if (native !== undefined) await this.#images.remove(native, signal);
  }

  /** Leaves blobs without a manifest to the registry's garbage collection. */
  protected override async removeUpload(
    uploadId: string,
    signal: AbortSignal,
    image?: ImageKey,
  ): Promise<void> {
    const record = await this.records.read(uploadId);
    const tags = [image, record && imageOf(record)].flatMap((key) => (key ? [tagOf(key)] : []));
    // Without a name, search all images.
    const images =
      tags.length === 0
        ? await this.#images.all(signal)
        : await Promise.all([...new Set(tags)].map((tag) => this.#images.at(tag, signal)));
    for (const found of images) {
      if (found?.uploadId === uploadId) await this.#images.remove(found, signal);
    }
    await this.#removePartial(uploadId, signal);
  }

  protected override async listParts(): Promise<readonly UploadPart[]> {
    return (await this.records.all()).map((record) => {
      const { 'upload-id': uploadId, changed } = record;
      const tag = tagOf(imageOf(record));
      return {
        uploadId,
        subject: `upload of ${this.#images.externalId(tag)} (unfinished)`,
        changedAt: new Date(changed),
        remove: async (signal) => {
          if ((await this.records.read(uploadId))?.changed !== changed) return false;
          // The process may have died between pushing the image and setting `latest`.
          const image = await this.#images.at(tag, signal);
          if (image?.uploadId === uploadId) await this.#images.point(image.imageName, signal);
          await this.#removePartial(uploadId, signal);
          return true;
        },
      };
    });
  }

  async *diagnose(options: CheckOptions = {}): AsyncIterable<CheckResult> {
    const { repository } = this.entry;
    yield* diagnoseRegistry(this.name, repository, this.#connect({ attempts: 1 }), signalOf(options));
  }

  #connect(retry: RegistryOptions['retry'] = this.#registryOptions.retry): Registry {
    const { name, entry } = this;
    return new Registry({ ...this.#registryOptions, retry, name, caFile: entry['ca-file'] });
  }

  async #removePartial(uploadId: string, signal: AbortSignal): Promise<void> {
    const record = await this.records.read(uploadId);
    if (record === undefined) return;
    await cancelBlobs(this.#registry, record, signal);
    await this.#images.removeUnnamed(record.manifests ?? [], signal, uploadId);
    await this.#removeReplaced(record, signal);
    await this.records.remove(uploadId);
  }

  async #removeReplaced(record: UploadRecord | undefined, signal: AbortSignal): Promise<void> {
    for (const digest of record?.replaced ?? []) {
      await this.#images.removeReplaced(digest, imageOf(record as UploadRecord), signal);
    }
  }
}
