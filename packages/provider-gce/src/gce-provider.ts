import {
  type CheckResult,
  type ImageFilter,
  type ImageFormat,
  type Logger,
  type OperationOptions,
  splitTags,
  type UploadResult,
} from '@nodepool-builder/image-builder';
import {
  type CloudImage,
  CloudImages,
  type CloudUpload,
  cloudImage,
  IMAGE_TAGS,
  readImageTags,
  SELF,
  signalOf,
  type UploadPart,
  UploadRecords,
} from '@nodepool-builder/image-builder/module-kit';
import { diagnoseGce } from './diagnose-gce.ts';
import { getImage, type Image, type ImageSite, imagesWith, listImages, removeImage } from './gce-images.ts';
import { GceSession, type GceSessionOptions } from './gce-session.ts';
import type { GceEntry } from './gce-settings.ts';
import { listObjects, removeObject, UPLOAD, uploadImage } from './gce-upload.ts';
import { labelValue, tagsOf } from './image-labels.ts';

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
export class GceProvider extends CloudImages<Image, typeof UPLOAD> {
  protected override readonly listsMayLag = true;
  readonly #options: GceProviderOptions;
  readonly #session: GceSession;

  constructor(options: GceProviderOptions) {
    const { entry, formats, session, directory, logger } = options;
    const { name, 'bandwidth-limit': bandwidthLimit } = entry;
    super({ name, formats, logger, bandwidthLimit, records: new UploadRecords(name, directory, UPLOAD) });
    this.#options = options;
    this.#session = new GceSession({ ...session, name, logger });
  }

  protected async ownImages(signal: AbortSignal): Promise<readonly CloudImage<Image>[]> {
    return (await imagesWith(this.#site(signal), 'provider', this.name)).map((image) => describe(image));
  }

  protected async getImage(externalId: string, signal: AbortSignal): Promise<CloudImage<Image> | undefined> {
    const { project } = await this.#session.open();
    const image = await getImage(this.#site(signal), externalId);
    return image && describe(image, project);
  }

  protected override async searchImages(
    { owner: owners = [SELF], properties, imageName }: ImageFilter,
    withRefused: boolean,
    signal: AbortSignal,
  ): Promise<readonly CloudImage<Image>[]> {
    const [family, ...families] = properties?.get('family') ?? [];
    const [name, ...names] = imageName ?? [];
    const conditions = [
      ...(family !== undefined && families.length === 0 && !withRefused ? [`family="${family}"`] : []),
      ...(name !== undefined && names.length === 0
        ? [`labels.${IMAGE_TAGS.imageName}="${labelValue(name)}"`]
        : []),
    ];
    const query = conditions.length > 0 ? { filter: conditions.map((one) => `(${one})`).join(' ') } : {};
    const { project: own } = await this.#session.open();
    const found: CloudImage<Image>[] = [];
    for (const owner of new Set([...owners, ...(withRefused ? [SELF] : [])])) {
      const project = owner === SELF ? own : owner;
      for (const image of await listImages(this.#site(signal), { ...query, project })) {
        found.push(describe(image, project, owner === SELF));
      }
    }
    return found;
  }

  protected override async checkUpload(): Promise<void> {
    void this.records.required;
  }

  protected async makeImage({ request, signal, ...upload }: CloudUpload): Promise<UploadResult> {
    const { entry } = this.#options;
    const site = { ...this.#site(signal), entry, records: this.records };
    const externalId = await uploadImage({ ...site, ...upload, request });
    await removeObject(site, request.uploadId);
    return { externalId };
  }

  protected async removeImage({ native }: CloudImage<Image>, signal: AbortSignal): Promise<void> {
    await removeImage(this.#site(signal), native);
  }

  protected async removeUpload(uploadId: string, signal: AbortSignal): Promise<void> {
    const site = this.#site(signal);
    for (const image of await imagesWith(site, 'uploadId', uploadId)) await removeImage(site, image);
    await removeObject({ ...site, entry: this.#options.entry, records: this.records.required }, uploadId);
  }

  protected override async listParts(signal: AbortSignal): Promise<readonly UploadPart[]> {
    const objects = await listObjects({ ...this.#site(signal), entry: this.#options.entry });
    return [...(await super.listParts(signal)), ...objects];
  }

  async *diagnose(options: OperationOptions = {}): AsyncIterable<CheckResult> {
    const { entry, session } = this.#options;
    const { endpoint } = session;
    yield* diagnoseGce({ session: this.#session, entry, endpoint, signal: signalOf(options) });
  }

  /** Ends the clients. */
  override close(): void {
    this.#session.close();
  }

  #site(signal: AbortSignal): ImageSite {
    return { session: this.#session, signal, interval: this.#options.interval ?? 10 };
  }
}

/**
 * Describes an image. One of another project has its URL as its id: names are unique in a project only.
 *
 * @param project default: that of the credentials
 */
function describe(image: Image, project?: string, isOwn = true): CloudImage<Image> {
  const { status, deprecated, architecture, family, labels } = image;
  const tags = isOwn ? tagsOf(image.description) : {};
  const name = image.name ?? '';
  const state = deprecated?.state && deprecated.state !== 'ACTIVE' ? deprecated.state : undefined;
  return cloudImage({
    native: image,
    externalId: isOwn ? name : `projects/${project}/global/images/${name}`,
    name,
    status: state ?? status ?? '',
    isComplete: status === 'READY',
    isUsable: status === 'READY' && state === undefined,
    isOwn,
    ...(project !== undefined && { owner: project }),
    ...(architecture && { architecture: architecture.toLowerCase() }),
    tagged: readImageTags(tags), // labels cannot have every character
    tags: splitTags(tags.tags),
    properties: { ...labels, ...tags, ...(family && { family }) },
    createdAt: new Date(image.creationTimestamp ?? 0),
  });
}
