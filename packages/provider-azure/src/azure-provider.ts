import type { DiskStorageAccountTypes } from '@azure/arm-compute';
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
import {
  BandwidthLimit,
  type CheckOptions,
  CloudError,
  KeyedQueue,
  RecordDirectory,
  readImageTags,
  signalOf,
  steadyProgress,
  unlessAbsent,
} from '@nodepool-builder/image-builder/module-kit';
import { type AzureAccount, AzureSession } from './azure-session.ts';
import { diagnoseAzure } from './diagnose-azure.ts';
import { GalleryImages } from './gallery-images.ts';
import { type ImageUpload, uploadImage } from './image-upload.ts';
import { ManagedImages } from './managed-images.ts';
import { type ImageStore, isOf, planImage, toCandidate, uploadedAt, uploadKey } from './stored-image.ts';
import { type UploadDisk, UploadDisks } from './upload-disks.ts';

export interface AzureProviderOptions {
  /** `providers[].name`. */
  readonly name: string;
  /** Accepted formats: `raw` and `vhd-fixed`. */
  readonly formats: readonly ImageFormat[];
  readonly account: () => Promise<AzureAccount>;
  /** Region of the disks and images: `westeurope`. */
  readonly location: string;
  readonly logger: Logger;
  /** Gallery for the images. Default: managed images. */
  readonly gallery?:
    | { readonly name: string; readonly targetRegions: readonly string[]; readonly replicas: number }
    | undefined;
  /** Storage of disks and images. Default `Standard_LRS`. */
  readonly diskType?: DiskStorageAccountTypes | undefined;
  /** Default `V2`. */
  readonly hyperVGeneration?: 'V1' | 'V2' | undefined;
  /** Whether managed images are stored in all zones of the region. Default false. */
  readonly zoneResilient?: boolean | undefined;
  /** Tags of disks and images. */
  readonly tags?: Readonly<Record<string, string>> | undefined;
  /** Seconds until an operation of Azure, such as the creation of an image, is given up. Default 3600. */
  readonly importTimeout?: number | undefined;
  /** Seconds between two queries for an operation or an image, unless Azure asks for another time. Default 2. */
  readonly pollInterval?: number | undefined;
  /** Bytes a second, for all uploads of this provider together. Default: no limit. */
  readonly bandwidthLimit?: number | undefined;
  /** Directory for records of uploads. Absent in a program that uploads nothing. */
  readonly directory?: string | undefined;
  readonly onTask?: ((task: string, milliseconds: number) => void) | undefined;
}

/** An upload that has begun, by its key. It is needed where a list does not show the upload's disk or image yet. */
const RECORD = {
  type: 'object',
  required: ['upload-id', 'disk'],
  properties: {
    'upload-id': { type: 'string' },
    disk: { type: 'string', description: 'Name of its disk.' },
    image: { type: 'string', description: 'Id of its image, if it is known before.' },
  },
} as const;

interface Cloud {
  readonly images: ImageStore;
  readonly disks: UploadDisks;
}

/**
 * A provider that stores images in Azure, as managed images or as versions in a gallery. The external id is that of
 * Resource Manager.
 *
 * Uploads run concurrently, but operations on one upload run one after the other.
 */
export class AzureProvider implements ImageProvider {
  readonly name: string;
  readonly formats: readonly ImageFormat[];
  readonly #options: AzureProviderOptions;
  readonly #limit: BandwidthLimit | undefined;
  readonly #turns = new KeyedQueue();
  readonly #records: RecordDirectory<typeof RECORD> | undefined;
  /** Ids of images that this process made, by the upload: a list may not show them yet. */
  readonly #made = new Map<string, string>();
  #cloud: Promise<Cloud> | undefined;

  constructor(options: AzureProviderOptions) {
    const { name, formats, bandwidthLimit, directory } = options;
    this.name = name;
    this.formats = formats;
    this.#options = options;
    this.#limit = bandwidthLimit === undefined ? undefined : new BandwidthLimit(bandwidthLimit);
    this.#records = directory === undefined ? undefined : new RecordDirectory(directory, RECORD);
  }

  /** @throws CloudError, ImageError */
  async upload(request: UploadRequest, options: OperationOptions = {}): Promise<UploadResult> {
    const { uploadId } = request;
    const onProgress = steadyProgress(options.onProgress ?? (() => {}));
    const externalId = await this.#turns.run(uploadId, options, async (signal) => {
      const { images, disks } = await this.#open();
      const { logger, importTimeout: timeout = 3600, pollInterval = 2 } = this.#options;
      const plan = planImage(this.name, request, this.#options.tags);
      if (plan.architecture === 'Arm64' && this.#options.gallery === undefined) {
        const subject = `provider ${this.name}: upload of image ${request.imageId}`;
        throw new CloudError('bad-request', subject, 'a managed image cannot be of Arm64; set gallery-name');
      }
      const earlierDisk = (await this.#records?.read(plan.key))?.disk;
      const record = async (disk: string): Promise<void> => {
        if (earlierDisk !== undefined && earlierDisk !== disk)
          await this.#removeDisk(disks, earlierDisk, uploadId, signal);
        const image = images.idOf(plan);
        await this.#records?.write(plan.key, { 'upload-id': uploadId, disk, ...(image && { image }) });
      };
      const upload: ImageUpload = {
        provider: this.name,
        plan,
        images,
        disks,
        limit: this.#limit,
        logger,
        signal,
        onProgress,
        earlierDisk,
        record,
        timeout,
        pollInterval,
      };
      const id = await uploadImage(upload);
      this.#made.set(uploadId, id);
      await this.#records?.remove(plan.key);
      return id;
    });
    onProgress({ done: 1, total: 1 });
    return { externalId };
  }

  /** @throws CloudError */
  async discard(uploadId: string, options: OperationOptions = {}): Promise<void> {
    await this.#turns.run(uploadId, options, async (signal) => {
      const { images, disks } = await this.#open();
      const key = uploadKey(this.name, uploadId);
      const record = await this.#records?.read(key);
      const made = this.#made.get(uploadId);
      const listed = (await images.list(signal).catch(unlessAbsent)) ?? []; // there may be no such gallery
      const ids = new Set(
        listed.filter((image) => isOf(image, this.name, uploadId)).map(({ id }) => id.toLowerCase()),
      );
      if (made !== undefined) ids.add(made.toLowerCase());
      if (record?.image !== undefined) ids.add(record.image.toLowerCase());
      for (const id of ids) {
        const image = await images.get(id, signal);
        if (image !== undefined && isOf(image, this.name, uploadId)) await images.delete(image.id, signal);
      }
      const found = await disks.list(signal, uploadId);
      for (const disk of found) await disks.delete(disk, signal);
      if (record !== undefined) await this.#removeDisk(disks, record.disk, uploadId, signal);
      this.#made.delete(uploadId);
      await this.#records?.remove(key);
    });
  }

  /** @throws CloudError `conflict` for an image that this software did not upload */
  async delete(externalId: string, options: OperationOptions = {}): Promise<void> {
    const signal = signalOf(options);
    const { images, disks } = await this.#open();
    const image = await images.get(externalId, signal);
    if (image === undefined) return;
    const tagged = readImageTags(image.tags);
    if (tagged?.provider !== this.name) {
      const reason = 'it has not the tags of an upload of this provider; delete it by hand';
      throw new CloudError(
        'conflict',
        `provider ${this.name}: deletion of image ${image.name ?? image.id}`,
        reason,
      );
    }
    await images.delete(image.id, signal);
    this.#made.delete(tagged.uploadId);
    for (const disk of await disks.list(signal, tagged.uploadId)) await disks.delete(disk, signal);
  }

  /** @throws CloudError */
  async list(options: OperationOptions = {}): Promise<readonly ProviderImage[]> {
    const { images } = await this.#open();
    const found = await images.list(signalOf(options));
    return found.flatMap((image) => {
      const tagged = readImageTags(image.tags);
      if (tagged?.provider !== this.name || image.state !== 'Succeeded') return [];
      const { uploadId, imageId, imageName, format = 'raw', size = 0, checksums } = tagged;
      return {
        externalId: image.id,
        uploadId,
        imageId,
        imageName,
        format,
        size,
        ...(checksums && { checksums }),
        uploadedAt: uploadedAt(image),
      };
    });
  }

  /** @throws CloudError */
  async findImages(filter: ImageFilter, options: CandidateOptions = {}): Promise<readonly ImageCandidate[]> {
    const signal = signalOf(options);
    const { images } = await this.#open();
    const groups = filter.properties?.get('resource-group') ?? [undefined];
    const found = new Map<string, ImageCandidate>();
    for (const group of groups) {
      for (const image of await images.list(signal, group))
        found.set(image.id.toLowerCase(), toCandidate(image, filter));
    }
    for (const id of options.known ?? []) {
      if (found.has(id.toLowerCase())) continue;
      const image = await images.get(id, signal);
      if (image !== undefined) found.set(id.toLowerCase(), toCandidate(image, filter));
    }
    return [...found.values()];
  }

  /** @throws CloudError */
  async listPartialUploads(options: OperationOptions = {}): Promise<readonly PartialUpload[]> {
    const signal = signalOf(options);
    const { images, disks } = await this.#open();
    const unfinished = (await images.list(signal)).filter(
      (image) => isOf(image, this.name) && image.state !== 'Succeeded',
    );
    return [
      ...(await disks.list(signal)).map((disk) => partialDisk(disks, disk)),
      ...unfinished.map((image) => ({
        uploadId: readImageTags(image.tags)?.uploadId ?? '',
        subject: `image ${image.name ?? image.id} (${image.state})`,
        changedAt: uploadedAt(image),
        remove: async (removal: OperationOptions = {}): Promise<boolean> => {
          const now = await images.get(image.id, signalOf(removal));
          if (
            now?.state !== image.state ||
            now.tags.nodepool_upload_time !== image.tags.nodepool_upload_time
          ) {
            return false;
          }
          await images.delete(image.id, signalOf(removal));
          return true;
        },
      })),
    ];
  }

  async *diagnose(options: CheckOptions = {}): AsyncIterable<CheckResult> {
    const { name, account, location, gallery, diskType = 'Standard_LRS' } = this.#options;
    yield* diagnoseAzure({ name, account, location, gallery: gallery?.name, diskType }, options);
  }

  /** Removes the disk of a name if it is of this upload. */
  async #removeDisk(disks: UploadDisks, name: string, uploadId: string, signal: AbortSignal): Promise<void> {
    const disk = await disks.get(name, signal);
    if (disk !== undefined && isOf(disk, this.name, uploadId)) await disks.delete(disk, signal);
  }

  /** After a failure, the next call reads the credentials again. */
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
    const {
      name,
      account,
      onTask,
      location,
      gallery,
      importTimeout: timeout = 3600,
      pollInterval,
    } = this.#options;
    const {
      diskType: storage = 'Standard_LRS',
      hyperVGeneration = 'V2',
      zoneResilient = false,
    } = this.#options;
    const onRefused = (): void => {
      this.#cloud = undefined;
    };
    const session = await AzureSession.open(await account(), { name, onTask, pollInterval, onRefused });
    const disks = new UploadDisks(session, { location, storage, hyperVGeneration, timeout });
    const images =
      gallery === undefined
        ? new ManagedImages(session, { location, hyperVGeneration, storage, zoneResilient, timeout })
        : new GalleryImages(session, {
            gallery: gallery.name,
            location,
            targetRegions: gallery.targetRegions,
            replicas: gallery.replicas,
            hyperVGeneration,
            storage:
              storage === 'Premium_LRS' ? 'Premium_LRS' : zoneResilient ? 'Standard_ZRS' : 'Standard_LRS',
            tags: this.#options.tags,
            timeout,
          });
    return { images, disks };
  }
}

function partialDisk(disks: UploadDisks, disk: UploadDisk): PartialUpload {
  return {
    uploadId: readImageTags(disk.tags)?.uploadId ?? '',
    subject: `disk ${disk.name} (${disk.state})`,
    changedAt: disk.createdAt,
    async remove(options = {}) {
      const signal = signalOf(options);
      const now = await disks.get(disk.name, signal);
      if (now?.uniqueId !== disk.uniqueId || now.state !== disk.state) return false;
      await disks.delete(now, signal);
      return true;
    },
  };
}
