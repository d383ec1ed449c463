import { createHash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import type { Image, Snapshot } from '@aws-sdk/client-ec2';
import {
  type CaptureRequest,
  ImageError,
  type ImageFormat,
  type SaveOptions,
  type StoredCapture,
} from '@nodepool-builder/image-builder';
import {
  DEFAULT_MAX_DISK_SIZE,
  withAbort,
  withNewFile,
  writeSparse,
} from '@nodepool-builder/image-builder/internal';
import {
  type CloudClaim,
  cloudError,
  IMAGE_TAGS,
  poll,
  steadyProgress,
} from '@nodepool-builder/image-builder/plugin';
import {
  getImage,
  listImages,
  listSnapshots,
  readTags,
  removeImage,
  removeSnapshot,
  snapshotsOf,
  toTags,
} from '../amis.ts';
import { awsCode } from '../aws-error.ts';
import type { AwsRegion } from '../aws-session.ts';
import type { AwsEntry } from '../aws-settings.ts';
import { FORBIDDEN, MAX_NAME_LENGTH, uploadTags } from '../aws-upload.ts';
import { INSTANCE_TAGS, type InstanceSite, ownerTags, tagFilters } from './launches.ts';

/** Time limit for the cleanup after a failed capture, in milliseconds. */
const CLEANUP_TIME = 120_000;

/**
 * Creates an AMI from a stopped instance and waits until it is available. Removes it after a failure.
 *
 * @throws ImageError `instance-failed`
 * @throws CloudError
 */
export async function captureInstance(
  site: InstanceSite,
  instanceId: string,
  { imageId }: CaptureRequest,
  signal: AbortSignal,
): Promise<CapturedAmi> {
  const { region, entry } = site;
  const Tags = toTags({
    ...entry.tags,
    ...ownerTags(site),
    Name: imageId,
    [IMAGE_TAGS.imageId]: imageId,
    [INSTANCE_TAGS.capturedOf]: instanceId,
  });
  const input = {
    InstanceId: instanceId,
    Name: `${imageId.slice(0, MAX_NAME_LENGTH - instanceId.length - 1)}-${instanceId}`.replaceAll(
      FORBIDDEN,
      '-',
    ),
    Description: `nodepool-builder: ${imageId}`,
    TagSpecifications: (['image', 'snapshot'] as const).map((ResourceType) => ({ ResourceType, Tags })),
  };
  signal.throwIfAborted();
  const unaborted = new AbortController().signal; // The cleanup needs the id in the response.
  try {
    await region
      .ec2(unaborted)
      .createImage(input)
      .catch((error: unknown) => {
        // The name contains the instance id, so the SDK has repeated a request whose response was lost.
        if (awsCode(error) !== 'InvalidAMIName.Duplicate') throw error;
      });
    return new CapturedAmi(site, await availableImage(site, instanceId, signal));
  } catch (error) {
    await removeCapture(site, instanceId, AbortSignal.timeout(CLEANUP_TIME)).catch((failure: unknown) => {
      site.logger.warn(
        `provider ${entry.name}: the AMI of instance ${instanceId} could not be deleted: ${String(failure)}`,
      );
    });
    throw error;
  }
}

async function availableImage(site: InstanceSite, instanceId: string, signal: AbortSignal): Promise<Image> {
  const { region, entry, interval } = site;
  const subject = `provider ${entry.name}: the AMI of instance ${instanceId}`;
  const look = async (): Promise<Image | undefined> => {
    const [image] = await capturedImages(site, instanceId, signal); // The list may not contain the AMI yet.
    if (image === undefined || image.State === 'pending') return undefined;
    if (image.State === 'available') return image;
    const reason = image.StateReason?.Message ?? 'AWS gives no reason';
    throw new ImageError(
      'instance-failed',
      `${subject} in ${region.name} is ${image.State}: ${reason}; run the build again`,
    );
  };
  return await poll(look, { subject, timeout: Number.POSITIVE_INFINITY, interval, signal });
}

/** Lists AMIs that were captured from one of our instances, or from any of them, and that belong to no upload. */
async function capturedImages(
  site: InstanceSite,
  instanceId: string | undefined,
  signal: AbortSignal,
): Promise<Image[]> {
  const query = { Owners: ['self'], Filters: captureFilters(site, instanceId) };
  const images = await listImages(site.region, query, signal);
  return images.filter(({ State: state, Tags }) => state !== 'deregistered' && isUnclaimed(Tags));
}

/** Like {@link capturedImages}, for snapshots. */
async function capturedSnapshots(
  site: InstanceSite,
  instanceId: string | undefined,
  signal: AbortSignal,
): Promise<Snapshot[]> {
  const snapshots = await listSnapshots(site.region, captureFilters(site, instanceId), signal);
  return snapshots.filter(({ Tags }) => isUnclaimed(Tags));
}

function captureFilters(site: InstanceSite, instanceId = '*'): { Name: string; Values: string[] }[] {
  return [...tagFilters(ownerTags(site)), { Name: `tag:${INSTANCE_TAGS.capturedOf}`, Values: [instanceId] }];
}

function isUnclaimed(tags: Image['Tags']): boolean {
  return readTags(tags)[IMAGE_TAGS.uploadId] === undefined;
}

/** Removes the unclaimed capture of an instance. */
async function removeCapture(site: InstanceSite, instanceId: string, signal: AbortSignal): Promise<void> {
  for (const image of await capturedImages(site, instanceId, signal)) {
    await removeImage(site.region, image, signal);
  }
  for (const { SnapshotId: id = '' } of await capturedSnapshots(site, instanceId, signal)) {
    await removeSnapshot(site.region, id, signal);
  }
}

/** Lists captured AMIs that belong to no upload, and orphaned snapshots of such AMIs. */
export async function findCaptures(site: InstanceSite, signal: AbortSignal): Promise<StoredCapture[]> {
  const images = await capturedImages(site, undefined, signal);
  const instances = new Set(images.map(({ Tags }) => readTags(Tags)[INSTANCE_TAGS.capturedOf]));
  const snapshots = (await capturedSnapshots(site, undefined, signal)).filter(
    ({ Tags }) => !instances.has(readTags(Tags)[INSTANCE_TAGS.capturedOf]),
  );
  return [
    ...images.map((image) => new CapturedAmi(site, image)),
    ...snapshots.map((snapshot) => new CapturedAmi(site, snapshot)),
  ];
}

/**
 * Tags a captured AMI as the image of an upload.
 *
 * @returns false if the AMI is missing, was not captured, or belongs to another upload
 */
export async function claimCapture(
  region: AwsRegion,
  entry: AwsEntry,
  id: string,
  claim: CloudClaim,
): Promise<boolean> {
  const { request, signal } = claim;
  const image = await getImage(region, id, signal);
  if (image?.State !== 'available') return false;
  const tags = readTags(image.Tags);
  const isOurs = tags[IMAGE_TAGS.provider] === entry.name && tags[INSTANCE_TAGS.capturedOf] !== undefined;
  const isFree = isUnclaimed(image.Tags) || tags[IMAGE_TAGS.uploadId] === request.uploadId;
  if (!isOurs || !isFree) return false;
  const { 'imds-support': imds } = entry;
  if (imds === 'v2.0' && image.ImdsSupport !== imds) {
    await region.ec2(signal).modifyImageAttribute({ ImageId: id, ImdsSupport: { Value: imds } });
  }
  const input = { Resources: [id, ...snapshotsOf(image)], Tags: uploadTags(entry, claim) };
  await region.ec2(signal).createTags(input);
  return true;
}

/** Description of an AMI or a snapshot. */
type StoredResource = Omit<Image, 'State'> & Pick<Snapshot, 'SnapshotId' | 'StartTime'>;

/** A captured AMI, or a snapshot whose AMI is gone. */
export class CapturedAmi implements StoredCapture {
  readonly externalId: string;
  readonly imageId: string;
  readonly capturedAt: Date;
  readonly formats: readonly ImageFormat[] = ['raw'];
  readonly #site: InstanceSite;
  readonly #image: StoredResource;

  constructor(site: InstanceSite, image: StoredResource) {
    const { [IMAGE_TAGS.imageId]: imageId } = readTags(image.Tags);
    this.externalId = image.ImageId ?? image.SnapshotId ?? '';
    this.imageId = imageId ?? this.externalId;
    this.capturedAt = new Date(image.CreationDate ?? image.StartTime ?? 0);
    this.#site = site;
    this.#image = image;
  }

  /**
   * Writes the root volume to a file.
   *
   * @throws CloudError
   */
  async save(format: ImageFormat, path: string, options: SaveOptions = {}): Promise<void> {
    const { maxDiskSize = DEFAULT_MAX_DISK_SIZE, onProgress = () => {} } = options;
    if (format !== 'raw') {
      throw new ImageError(
        'format-unavailable',
        `AMI ${this.externalId} is raw and cannot be saved as ${format}; convert it`,
      );
    }
    const onStep = steadyProgress(onProgress);
    await withAbort(options, async (signal) => {
      const doing = `saving AMI ${this.externalId} to ${path}`;
      await withNewFile(path, doing, (file) => this.#write(file, maxDiskSize, onStep, signal));
    });
    onStep({ done: 1, total: 1 });
  }

  /** @throws CloudError */
  async discard(options: { readonly signal?: AbortSignal } = {}): Promise<void> {
    await withAbort(options, async (signal) => {
      const { region } = this.#site;
      if (this.#image.ImageId !== undefined) await removeImage(region, this.#image, signal);
      const { [INSTANCE_TAGS.capturedOf]: instanceId } = readTags(this.#image.Tags);
      if (instanceId !== undefined) await removeCapture(this.#site, instanceId, signal);
    });
  }

  async #write(
    file: FileHandle,
    maxDiskSize: number,
    onProgress: ReturnType<typeof steadyProgress>,
    signal: AbortSignal,
  ): Promise<void> {
    const { entry } = this.#site;
    const disk = await listBlocks(this.#site.region, this.#rootSnapshot(), signal);
    if (disk.size > maxDiskSize) {
      throw new ImageError(
        'image-too-large',
        `AMI ${this.externalId} has ${disk.size} bytes, more than the limit of ${maxDiskSize}`,
      );
    }
    const failure = new AbortController();
    const either = AbortSignal.any([signal, failure.signal]);
    const rest = disk.blocks.values();
    let done = 0;
    const worker = async (): Promise<void> => {
      for (const block of rest) {
        const bytes = await readBlock(this.#site.region, this.#rootSnapshot(), block, either);
        await writeSparse(file, bytes, block.index * disk.blockSize);
        onProgress({ done: ++done * disk.blockSize, total: disk.blocks.length * disk.blockSize });
      }
    };
    const workers = Array.from({ length: entry['upload-concurrency'] }, worker);
    for (const running of workers) running.catch((error: unknown) => failure.abort(error));
    await Promise.allSettled(workers);
    either.throwIfAborted();
    await file.truncate(disk.size);
  }

  #rootSnapshot(): string {
    const { BlockDeviceMappings: mappings = [], RootDeviceName: root, SnapshotId } = this.#image;
    const mapping = mappings.find(({ DeviceName: device }) => device === root);
    const id = SnapshotId ?? mapping?.Ebs?.SnapshotId;
    if (id !== undefined) return id;
    throw new ImageError('image-not-found', `AMI ${this.externalId} has no snapshot of its root volume`);
  }
}

interface SnapshotBlock {
  readonly index: number;
  readonly token: string;
}

interface SnapshotDisk {
  /** Size in bytes. */
  readonly size: number;
  readonly blockSize: number;
  /** Blocks that contain data. */
  readonly blocks: readonly SnapshotBlock[];
}

/** Limits for a disk of 4 TiB that is full of data. */
const BLOCKS = { bounds: { entries: 2 ** 23, bytes: 2 ** 31 }, pageSizes: [10_000, 1000, undefined] };

async function listBlocks(region: AwsRegion, SnapshotId: string, signal: AbortSignal): Promise<SnapshotDisk> {
  let [size, blockSize] = [0, 0];
  const blocks = await region.list(
    'ListSnapshotBlocks',
    async (page) => {
      const listed = await region.ebs(signal).listSnapshotBlocks({ SnapshotId, ...page });
      [size, blockSize] = [(listed.VolumeSize ?? 0) * 2 ** 30, listed.BlockSize ?? 0];
      return listed;
    },
    ({ Blocks }) =>
      Blocks?.map(({ BlockIndex: index = 0, BlockToken: token = '' }) => ({
        index,
        token,
      })),
    BLOCKS,
  );
  return { size, blockSize, blocks };
}

async function readBlock(
  region: AwsRegion,
  SnapshotId: string,
  { index: BlockIndex, token: BlockToken }: SnapshotBlock,
  signal: AbortSignal,
): Promise<Buffer> {
  const input = { SnapshotId, BlockIndex, BlockToken };
  const { BlockData, Checksum } = await region.ebs(signal).getSnapshotBlock(input);
  const bytes = Buffer.from((await BlockData?.transformToByteArray()) ?? []);
  if (createHash('sha256').update(bytes).digest('base64') === Checksum) return bytes;
  const reason = `block ${BlockIndex} arrived with a wrong checksum; run the build again`;
  throw cloudError('image-failed', `snapshot ${SnapshotId}`, reason);
}
