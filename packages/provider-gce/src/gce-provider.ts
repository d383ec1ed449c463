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
import { splitTags } from '@nodepool-builder/image-builder';
import {
  BandwidthLimit,
  CloudError,
  cleanUpAfter,
  IMAGE_TAGS,
  KeyedQueue,
  SELF,
  signalOf,
  steadyProgress,
} from '@nodepool-builder/image-builder/module-kit';
import { diagnoseGce } from './diagnose-gce.ts';
import { findImages, getImage, type Image, type ImageSite, listImages, removeImage } from './gce-images.ts';
import { GceSession, type GceSessionOptions } from './gce-session.ts';
import type { GceEntry } from './gce-settings.ts';
import { type GceUpload, OBJECTS, removeObject, UploadRecords, uploadImage } from './gce-upload.ts';
import { labelValue, taggedImage, tagsOf } from './image-labels.ts';

export interface GceProviderOptions {
  readonly entry: GceEntry;
  /** Accepted formats, the preferred one first. */
  readonly formats: readonly ImageFormat[];
  /** Directory for records of unfinished uploads. Absent: this process uploads nothing. */
  readonly directory?: string | undefined;
  readonly session: Omit<GceSessionOptions, 'name'>;
  /** Seconds between two looks at something that is pending, at most. Default 10. */
  readonly interval?: number | undefined;
  readonly logger: Logger;
}

/** A provider that keeps images in Compute Engine. The external id is the image's name. */
export class GceProvider implements ImageProvider, Disposable {
  readonly name: string;
  readonly formats: readonly ImageFormat[];
  readonly #options: GceProviderOptions;
  readonly #session: GceSession;
  readonly #limit: BandwidthLimit | undefined;
  readonly #turns = new KeyedQueue();

  constructor(options: GceProviderOptions) {
    const { entry, formats, session } = options;
    this.name = entry.name;
    this.formats = formats;
    this.#options = options;
    this.#session = new GceSession({ ...session, name: entry.name, logger: options.logger });
    const limit = entry['bandwidth-limit'];
    this.#limit = limit === undefined ? undefined : new BandwidthLimit(limit);
  }

  /** @throws CloudError */
  async upload(request: UploadRequest, options: OperationOptions = {}): Promise<UploadResult> {
    return await this.#turns.run(request.uploadId, options, async (signal) => {
      const { entry } = this.#options;
      const onProgress = steadyProgress(options.onProgress ?? (() => {}));
      const records = this.#records();
      const session = this.#session;
      const upload: GceUpload = {
        session,
        entry,
        request,
        records,
        interval: this.#interval,
        limit: this.#limit,
        onProgress,
        signal,
      };
      try {
        const externalId = await uploadImage(upload);
        await removeObject(upload, request.uploadId);
        onProgress({ done: 1, total: 1 });
        return { externalId };
      } catch (error) {
        const failed = {
          provider: this.name,
          imageId: request.imageId,
          logger: this.#options.logger,
          signal,
        };
        throw await cleanUpAfter(error, failed, (cleanup) => this.#remove(request.uploadId, cleanup));
      }
    });
  }

  /** @throws CloudError */
  async discard(uploadId: string, options: OperationOptions = {}): Promise<void> {
    await this.#turns.run(uploadId, options, async (signal) => this.#remove(uploadId, signal));
  }

  /** @throws CloudError */
  async delete(externalId: string, options: OperationOptions = {}): Promise<void> {
    const finder = this.#finder(options);
    const image = await getImage(finder, externalId);
    if (image === undefined) return;
    if (taggedImage(image.description)?.provider !== this.name) {
      const reason = `nodepool-builder did not upload the image ${externalId} to this provider; delete it by hand`;
      throw new CloudError('bad-request', `provider ${this.name}`, reason);
    }
    await removeImage(finder, image);
  }

  /** @throws CloudError */
  async list(options: OperationOptions = {}): Promise<readonly ProviderImage[]> {
    const images = await findImages(this.#finder(options), 'provider', this.name);
    return images.flatMap((image) => (image.status === 'READY' ? (toProviderImage(image) ?? []) : []));
  }

  /** @throws CloudError */
  async findImages(filter: ImageFilter, options: CandidateOptions = {}): Promise<readonly ImageCandidate[]> {
    const finder = this.#finder(options);
    const { owner: owners = [SELF], properties, imageName } = filter;
    const { project: own } = await this.#session.open();
    const [family, ...families] = properties?.get('family') ?? [];
    const [name, ...names] = imageName ?? [];
    const conditions = [
      ...(family !== undefined && families.length === 0 && options.withRefused !== true
        ? [`family="${family}"`]
        : []),
      ...(name !== undefined && names.length === 0
        ? [`labels.${IMAGE_TAGS.imageName}="${labelValue(name)}"`]
        : []),
    ];
    const query = conditions.length > 0 ? { filter: conditions.map((one) => `(${one})`).join(' ') } : {};
    const found = new Map<string, ImageCandidate>();
    for (const owner of new Set([...owners, ...(options.withRefused === true ? [SELF] : [])])) {
      const project = owner === SELF ? own : owner;
      for (const image of await listImages(finder, { ...query, project })) {
        const candidate = toCandidate(image, project, owner === SELF);
        if (!found.has(candidate.externalId)) found.set(candidate.externalId, candidate);
      }
    }
    for (const id of options.known ?? []) {
      const image = found.has(id) ? undefined : await getImage(finder, id);
      if (image !== undefined) found.set(id, toCandidate(image, own, true));
    }
    return [...found.values()];
  }

  /** @throws CloudError */
  async listPartialUploads(options: OperationOptions = {}): Promise<readonly PartialUpload[]> {
    const finder = this.#finder(options);
    const images = await findImages(finder, 'provider', this.name);
    const partial = images.flatMap((image): PartialUpload[] => {
      const { uploadId } = taggedImage(image.description) ?? {};
      if (image.status === 'READY' || uploadId === undefined) return [];
      return [
        {
          uploadId,
          subject: `image ${image.name} (${image.status})`,
          changedAt: new Date(image.creationTimestamp ?? 0),
          remove: async (later = {}) => {
            const now = await getImage(this.#finder(later), image.name ?? '');
            if (now === undefined || now.status !== image.status) return false;
            await removeImage(this.#finder(later), now);
            return true;
          },
        },
      ];
    });
    const { 'bucket-name': bucket } = this.#options.entry;
    if (bucket === undefined) return partial;
    const [files] = await this.#session.call(
      'ListObjects',
      finder.signal,
      async ({ storage }) => await storage.bucket(bucket).getFiles({ prefix: OBJECTS }),
    );
    for (const file of files) {
      const { metadata = {}, updated = '', generation } = file.metadata;
      const { uploadId, provider } = metadata;
      if (typeof uploadId !== 'string' || provider !== this.name) continue;
      partial.push({
        uploadId,
        subject: `object ${bucket}/${file.name}`,
        changedAt: new Date(updated),
        remove: async (later = {}) => {
          try {
            await this.#session.call('DeleteObject', signalOf(later), async () => {
              await file.delete({ ifGenerationMatch: Number(generation) });
            });
            return true;
          } catch (error) {
            if (error instanceof CloudError && ['not-found', 'conflict'].includes(error.code)) return false;
            throw error;
          }
        },
      });
    }
    return partial;
  }

  async *diagnose(options: OperationOptions = {}): AsyncIterable<CheckResult> {
    const { entry, session } = this.#options;
    const { endpoint } = session;
    yield* diagnoseGce({ session: this.#session, entry, endpoint, signal: signalOf(options) });
  }

  /** Ends the clients. */
  close(): void {
    this.#session.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  get #interval(): number {
    return this.#options.interval ?? 10;
  }

  #finder(options: OperationOptions): ImageSite {
    return { session: this.#session, signal: signalOf(options), interval: this.#interval };
  }

  #records(): UploadRecords {
    const { directory } = this.#options;
    if (directory !== undefined) return new UploadRecords(directory);
    throw new CloudError('bad-request', `provider ${this.name}`, 'this program uploads nothing');
  }

  /** Removes everything of an upload. */
  async #remove(uploadId: string, signal: AbortSignal): Promise<void> {
    const { entry } = this.#options;
    const finder = this.#finder({ signal });
    for (const image of await findImages(finder, 'uploadId', uploadId)) await removeImage(finder, image);
    await removeObject({ session: this.#session, entry, signal, records: this.#records() }, uploadId);
  }
}

function toProviderImage(image: Image): ProviderImage | undefined {
  const tagged = taggedImage(image.description);
  if (tagged === undefined) return undefined;
  const { imageId, imageName, uploadId, format = 'raw', size = 0, checksums } = tagged;
  return {
    externalId: image.name ?? '',
    uploadId,
    imageId,
    imageName,
    format,
    size,
    ...(checksums && { checksums }),
    uploadedAt: new Date(image.creationTimestamp ?? 0),
  };
}

/** An image of another project has its URL as its id: names are unique in a project only. */
function toCandidate(image: Image, project: string, isOwn: boolean): ImageCandidate {
  const tags = isOwn ? tagsOf(image.description) : {};
  const tagged = isOwn ? taggedImage(image.description) : undefined;
  const { name = '', status = '', deprecated, architecture } = image;
  const state = deprecated?.state && deprecated.state !== 'ACTIVE' ? deprecated.state : undefined;
  return {
    externalId: isOwn ? (name ?? '') : `projects/${project}/global/images/${name}`,
    name: name ?? '',
    status: state ?? String(status),
    isUsable: status === 'READY' && state === undefined,
    isOwn,
    owner: project,
    ...(tagged && { imageName: tagged.imageName, imageId: tagged.imageId }),
    ...(architecture && { architecture: architecture.toLowerCase() }),
    tags: splitTags(tags.tags),
    properties: { ...image.labels, ...tags, ...(image.family && { family: image.family }) },
    createdAt: new Date(image.creationTimestamp ?? 0),
    ...(tagged?.builtAt && { builtAt: tagged.builtAt }),
  };
}
