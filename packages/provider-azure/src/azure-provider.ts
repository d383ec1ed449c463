import type { CheckOptions, CheckResult, ImageFilter, UploadResult } from '@nodepool-builder/image-builder';
import { objectOf, TEXT } from '@nodepool-builder/image-builder/internal';
import {
  type CloudImage,
  CloudImages,
  type CloudImagesOptions,
  type CloudUpload,
  cloudError,
  type UploadPart,
  unlessAbsent,
} from '@nodepool-builder/image-builder/plugin';
import { type AzureAccount, AzureSession } from './azure-session.ts';
import type { AzureEntry } from './azure-settings.ts';
import { diagnoseAzure } from './diagnose-azure.ts';
import { GalleryImages } from './gallery-images.ts';
import { isFinal, uploadImage } from './image-upload.ts';
import { ManagedImages } from './managed-images.ts';
import { describeImage, type ImageStore, isOf, planImage, type StoredImage } from './stored-image.ts';
import { UploadDisks } from './upload-disks.ts';

export interface AzureProviderOptions extends CloudImagesOptions<AzureEntry> {
  readonly account: () => Promise<AzureAccount>;
  /** Seconds between two polls of an operation or an image, unless Azure requests another interval. Default 2. */
  readonly pollInterval?: number | undefined;
  readonly onTask?: ((task: string, milliseconds: number) => void) | undefined;
}

/**
 * Record of an upload that has started: the name of its disk and, if known in advance, the id of its image. It is
 * needed while a list does not show them yet.
 */
const RECORD = objectOf({ 'upload-id': TEXT, disk: TEXT }, { image: TEXT });

interface Cloud {
  readonly images: ImageStore;
  readonly disks: UploadDisks;
}

/**
 * A provider that stores images in Azure, as managed images or as versions in a gallery. The external id is the
 * Resource Manager id.
 */
export class AzureProvider extends CloudImages<AzureEntry, StoredImage, typeof RECORD> {
  protected override readonly listsMayLag = true;
  readonly #options: AzureProviderOptions;
  /** Ids of images that this process created, by upload id. A list may not show them yet. */
  readonly #made = new Map<string, string>();
  #cloud: Promise<Cloud> | undefined;

  constructor(options: AzureProviderOptions) {
    super(options, RECORD);
    this.#options = options;
  }

  protected async listImages(signal: AbortSignal): Promise<readonly CloudImage<StoredImage>[]> {
    const { images } = await this.#open();
    return (await images.list(signal)).map((image) => describeImage(image));
  }

  protected override async getImage(
    externalId: string,
    signal: AbortSignal,
    filter?: ImageFilter,
  ): Promise<CloudImage<StoredImage> | undefined> {
    const { images } = await this.#open();
    const image = await images.get(externalId, signal);
    return image && describeImage(image, filter);
  }

  protected override async searchImages(
    filter: ImageFilter,
    _withRefused: boolean,
    signal: AbortSignal,
  ): Promise<readonly CloudImage<StoredImage>[]> {
    const { images } = await this.#open();
    const groups = filter.properties?.get('resource-group') ?? [undefined];
    const found: StoredImage[] = [];
    for (const group of groups) found.push(...(await images.list(signal, group)));
    return found.map((image) => describeImage(image, filter));
  }

  protected override async checkUpload(upload: CloudUpload): Promise<void> {
    const { architecture } = planImage(this.entry, upload);
    if (architecture !== 'Arm64' || this.entry['gallery-name'] !== undefined) return;
    throw cloudError('bad-request', upload.subject, 'a managed image cannot be Arm64; set gallery-name');
  }

  protected async makeImage(running: CloudUpload): Promise<UploadResult> {
    const { cleanUp } = running;
    running.cleanUp = async () => {}; // The next attempt resumes on a remaining disk.
    const { request, signal } = running;
    const { uploadId } = request;
    const { images, disks } = await this.#open();
    const { entry, logger } = this;
    const { pollInterval = 2 } = this.#options;
    const plan = planImage(entry, running);
    const earlierDisk = (await this.records.read(uploadId))?.disk;
    const record = async (disk: string): Promise<void> => {
      if (earlierDisk !== undefined && earlierDisk !== disk) {
        await this.#removeDisk(earlierDisk, uploadId, signal);
      }
      const image = images.idOf(plan);
      await this.records.write(uploadId, { 'upload-id': uploadId, disk, ...(image && { image }) });
    };
    const more = { entry, logger, plan, images, disks, earlierDisk, record, pollInterval };
    try {
      const externalId = await uploadImage(Object.assign(running, more));
      this.#made.set(uploadId, externalId);
      return { externalId };
    } catch (error) {
      // No attempt follows. After a conflict, or if the upload is shared, the disks may belong to another process.
      const isLast = request.shared !== true && isFinal(error);
      if (isLast && (await this.records.read(uploadId)) !== undefined) running.cleanUp = cleanUp;
      throw error;
    }
  }

  protected async removeImage(
    { native, tagged }: CloudImage<StoredImage>,
    signal: AbortSignal,
  ): Promise<void> {
    const { images, disks } = await this.#open();
    await images.delete(native.id, signal);
    if (tagged === undefined) return;
    this.#made.delete(tagged.uploadId);
    for (const disk of await disks.list(signal, tagged.uploadId)) await disks.delete(disk, signal);
  }

  protected override async removeUpload(uploadId: string, signal: AbortSignal): Promise<void> {
    const { images, disks } = await this.#open();
    const record = await this.records.read(uploadId);
    const listed = (await images.list(signal).catch(unlessAbsent)) ?? []; // The gallery may not exist.
    const own = listed.filter((image) => isOf(image, this.name, uploadId)).map(({ id }) => id);
    const ids = [...own, this.#made.get(uploadId), record?.image].flatMap((id) => id?.toLowerCase() ?? []);
    for (const id of new Set(ids)) {
      const image = await images.get(id, signal);
      if (image !== undefined && isOf(image, this.name, uploadId)) await images.delete(image.id, signal);
    }
    const remaining = (await disks.list(signal, uploadId).catch(unlessAbsent)) ?? []; // The group may not exist.
    for (const disk of remaining) await disks.delete(disk, signal);
    if (record !== undefined) await this.#removeDisk(record.disk, uploadId, signal);
    this.#made.delete(uploadId);
  }

  protected override async listParts(signal: AbortSignal): Promise<readonly UploadPart[]> {
    const { images, disks } = await this.#open();
    const remove = async ({ externalId }: CloudImage, again: AbortSignal): Promise<void> =>
      images.delete(externalId, again);
    const incomplete = (await this.ownImages(signal)).filter(({ isComplete }) => !isComplete);
    const parts = incomplete.flatMap((image) => {
      return this.partOf(image, `image ${image.native.name ?? image.externalId}`, remove) ?? [];
    });
    return [...(await disks.listParts(signal)), ...parts];
  }

  async *diagnose(options: CheckOptions = {}): AsyncIterable<CheckResult> {
    const { account } = this.#options;
    yield* diagnoseAzure({ entry: this.entry, account }, options);
  }

  /** Removes the disk with this name if it belongs to this upload. */
  async #removeDisk(name: string, uploadId: string, signal: AbortSignal): Promise<void> {
    const { disks } = await this.#open();
    const disk = await disks.get(name, signal);
    if (disk !== undefined && isOf(disk, this.name, uploadId)) await disks.delete(disk, signal);
  }

  /** Opens the session. After a failure, the next call reads the credentials again. */
  async #open(): Promise<Cloud> {
    this.#cloud ??= this.#connect();
    try {
      return await this.#cloud;
    } catch (error) {
      this.#cloud = undefined;
      throw error;
    }
  }

  async #connect(): Promise<Cloud> {
    const { entry } = this;
    const { account, onTask, pollInterval } = this.#options;
    const onRefused = (): void => {
      this.#cloud = undefined;
    };
    const changeTimeout = entry['image-import-timeout'];
    const options = { name: this.name, onTask, pollInterval, changeTimeout, onRefused };
    const session = await AzureSession.open(await account(), options);
    const Images = entry['gallery-name'] === undefined ? ManagedImages : GalleryImages;
    return { images: new Images(session, entry), disks: new UploadDisks(session, entry) };
  }
}
