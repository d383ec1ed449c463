import {
  type CheckResult,
  type ImageFilter,
  type OperationOptions,
  splitTags,
  type UploadResult,
} from '@nodepool-builder/image-builder';
import { readImageTags } from '@nodepool-builder/image-builder/internal';
import {
  type CloudImage,
  CloudImages,
  type CloudImagesOptions,
  type CloudUpload,
  cloudImage,
  IMAGE_TAGS,
  OWN_ACCOUNT,
  signalOf,
  type UploadPart,
} from '@nodepool-builder/image-builder/plugin';
import { diagnoseGce } from './diagnose-gce.ts';
import { getImage, type Image, type ImageSite, imagesWith, listImages, removeImage } from './gce-images.ts';
import { GceSession, type GceSessionOptions } from './gce-session.ts';
import type { GceEntry } from './gce-settings.ts';
import { cancelTransfer, listObjects, removeObject, UPLOAD, uploadImage } from './gce-upload.ts';
import { labelValue, tagsOf } from './image-labels.ts';

export interface GceProviderOptions extends CloudImagesOptions<GceEntry> {
  readonly session: Omit<GceSessionOptions, 'name'>;
  /** Max seconds between two polls of a pending resource. Default 10. */
  readonly interval?: number | undefined;
}

/** A provider that stores images in Compute Engine. The external id is the image name. */
export class GceProvider extends CloudImages<GceEntry, Image, typeof UPLOAD> {
  protected override readonly listsMayLag = true;
  readonly #options: GceProviderOptions;
  readonly #session: GceSession;

  constructor(options: GceProviderOptions) {
    super(options, UPLOAD);
    this.#options = options;
    this.#session = new GceSession({ ...options.session, name: this.name, logger: this.logger });
  }

  protected async listImages(signal: AbortSignal, uploadId?: string): Promise<readonly CloudImage<Image>[]> {
    const [tag, value] =
      uploadId === undefined ? (['provider', this.name] as const) : (['uploadId', uploadId] as const);
    return (await imagesWith(this.#site(signal), tag, value)).map((image) => describe(image));
  }

  protected override async getImage(
    externalId: string,
    signal: AbortSignal,
  ): Promise<CloudImage<Image> | undefined> {
    const { project } = await this.#session.open();
    const image = await getImage(this.#site(signal), externalId);
    return image && describe(image, project);
  }

  protected override async searchImages(
    { owner: owners = [OWN_ACCOUNT], properties, imageName }: ImageFilter,
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
    for (const owner of new Set([...owners, ...(withRefused ? [OWN_ACCOUNT] : [])])) {
      const project = owner === OWN_ACCOUNT ? own : owner;
      for (const image of await listImages(this.#site(signal), { ...query, project })) {
        found.push(describe(image, project, owner === OWN_ACCOUNT));
      }
    }
    return found;
  }

  protected async makeImage(running: CloudUpload): Promise<UploadResult> {
    const { entry, records } = this;
    const { uploadId, shared = false } = running.request;
    if (shared) running.cleanUp = async (cleanup) => this.#removeFailed(uploadId, cleanup);
    const upload = { ...running, ...this.#site(running.signal), entry, records };
    const externalId = await uploadImage(upload);
    await removeObject(upload, uploadId);
    return { externalId };
  }

  protected async removeImage({ native }: CloudImage<Image>, signal: AbortSignal): Promise<void> {
    await removeImage(this.#site(signal), native);
  }

  protected override async removeUpload(uploadId: string, signal: AbortSignal): Promise<void> {
    await super.removeUpload(uploadId, signal);
    const records = this.records.required;
    await removeObject({ ...this.#site(signal), entry: this.entry, records }, uploadId);
  }

  protected override async listParts(signal: AbortSignal): Promise<readonly UploadPart[]> {
    const objects = await listObjects({ ...this.#site(signal), entry: this.entry });
    return [...(await super.listParts(signal)), ...objects];
  }

  async *diagnose(options: OperationOptions = {}): AsyncIterable<CheckResult> {
    const { endpoint } = this.#options.session;
    const signal = signalOf(options);
    yield* diagnoseGce({ session: this.#session, entry: this.entry, endpoint, signal });
  }

  /** Closes the clients. */
  override close(): void {
    this.#session.close();
  }

  /** Removes what no other process of a shared upload can use: an image that failed, and this host's transfer. */
  async #removeFailed(uploadId: string, signal: AbortSignal): Promise<void> {
    const images = await this.ownImages(signal, uploadId);
    for (const image of images) {
      if (image.native.status === 'FAILED') await this.removeImage(image, signal);
    }
    const { entry, records } = this;
    await cancelTransfer({ ...this.#site(signal), entry, records }, uploadId);
    await records.remove(uploadId);
  }

  #site(signal: AbortSignal): ImageSite {
    return { session: this.#session, signal, interval: this.#options.interval ?? 10 };
  }
}

/**
 * Describes an image. The external id of another project's image is its URL, because names are unique only within a
 * project.
 *
 * @param project default: the project of the credentials
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
    tagged: readImageTags(tags), // Labels cannot contain every character, so the tags come from the description.
    tags: splitTags(tags.tags),
    properties: { ...labels, ...tags, ...(family && { family }) },
    createdAt: new Date(image.creationTimestamp ?? 0),
  });
}
