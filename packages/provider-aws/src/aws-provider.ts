import type { Image, Snapshot } from '@aws-sdk/client-ec2';
import type {
  CandidateOptions,
  CheckResult,
  ClaimRequest,
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
  CloudError,
  cleanUpAfter,
  KeyedQueue,
  readImageTags,
  signalOf,
  steadyProgress,
} from '@nodepool-builder/image-builder/module-kit';
import {
  findImages,
  findSnapshots,
  getImage,
  readTags,
  removeImage,
  removeSnapshot,
  snapshotsOf,
  usersOf,
} from './amis.ts';
import { type AwsRegion, AwsSession, type SessionOptions } from './aws-session.ts';
import type { AwsEntry } from './aws-settings.ts';
import { type AwsUpload, UploadRecords } from './aws-upload.ts';
import { findCandidates } from './candidates.ts';
import { removeSnapshots, uploadSnapshot } from './ebs-direct.ts';
import { claimCapture } from './instance/capture.ts';
import { distributeImage, registerImage } from './register-image.ts';
import { importImage, importSnapshot, removeImport } from './s3-import.ts';

export interface AwsProviderOptions {
  readonly entry: AwsEntry;
  /** Accepted formats, the preferred one first. */
  readonly formats: readonly ImageFormat[];
  /** Directory for records of unfinished uploads. Absent: this process uploads nothing. */
  readonly directory?: string | undefined;
  readonly session: Omit<SessionOptions, 'name'>;
  /** Seconds between two looks at something that is pending, at most. Default 10. */
  readonly interval?: number | undefined;
  readonly logger: Logger;
}

/** A provider that keeps images as AMIs in EC2. The external id is the AMI's. */
export class AwsProvider implements ImageProvider, Disposable {
  readonly name: string;
  readonly formats: readonly ImageFormat[];
  readonly #options: AwsProviderOptions;
  readonly #session: AwsSession;
  readonly #limit: BandwidthLimit | undefined;
  readonly #turns = new KeyedQueue();
  readonly #records: UploadRecords | undefined;

  constructor(options: AwsProviderOptions) {
    const { entry, formats, session, directory } = options;
    this.name = entry.name;
    this.formats = formats;
    this.#options = options;
    this.#session = new AwsSession({ ...session, name: entry.name });
    this.#records = directory === undefined ? undefined : new UploadRecords(directory);
    const limit = entry['bandwidth-limit'];
    this.#limit = limit === undefined ? undefined : new BandwidthLimit(limit);
  }

  /** @throws CloudError */
  async upload(request: UploadRequest, options: OperationOptions = {}): Promise<UploadResult> {
    return await this.#turns.run(request.uploadId, options, async (signal) => {
      const onProgress = steadyProgress(options.onProgress ?? (() => {}));
      const upload = await this.#prepare(request, onProgress, signal);
      try {
        const externalId = await this.#makeImage(upload);
        await upload.records.upload.remove(request.uploadId);
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
  async claim(
    externalId: string,
    request: ClaimRequest,
    options: OperationOptions = {},
  ): Promise<UploadResult | undefined> {
    return await this.#turns.run(request.uploadId, options, async (signal) => {
      const { entry, interval = 10 } = this.#options;
      const region = await this.#session.open();
      if (!(await claimCapture(region, entry, externalId, request, signal))) return undefined;
      await distributeImage({ region, entry, request, interval, signal }, this.#session, externalId);
      return { externalId };
    });
  }

  /** @throws CloudError */
  async discard(uploadId: string, options: OperationOptions = {}): Promise<void> {
    await this.#turns.run(uploadId, options, async (signal) => this.#remove(uploadId, signal));
  }

  /** @throws CloudError */
  async delete(externalId: string, options: OperationOptions = {}): Promise<void> {
    const signal = signalOf(options);
    const main = await this.#session.open();
    const image = await getImage(main, externalId, signal);
    if (image === undefined) return;
    const tagged = readImageTags(readTags(image.Tags));
    if (tagged?.provider !== this.name) {
      const reason = `nodepool-builder did not upload AMI ${externalId} to this provider; delete it by hand`;
      throw new CloudError('bad-request', `provider ${this.name}`, reason);
    }
    for (const region of await this.#regions()) {
      if (region === main) continue;
      for (const copy of await findImages(region, 'uploadId', tagged.uploadId, signal)) {
        await removeImage(region, copy, signal);
      }
    }
    await removeImage(main, image, signal);
  }

  /** @throws CloudError */
  async list(options: OperationOptions = {}): Promise<readonly ProviderImage[]> {
    const images = await findImages(await this.#session.open(), 'provider', this.name, signalOf(options));
    return images.flatMap((image) => (image.State === 'available' ? (toProviderImage(image) ?? []) : []));
  }

  /** @throws CloudError */
  async findImages(filter: ImageFilter, options: CandidateOptions = {}): Promise<readonly ImageCandidate[]> {
    const signal = signalOf(options);
    return await findCandidates(filter, { ...options, region: await this.#session.open(), signal });
  }

  /** @throws CloudError */
  async listPartialUploads(options: OperationOptions = {}): Promise<readonly PartialUpload[]> {
    const signal = signalOf(options);
    const partial: PartialUpload[] = [];
    const main = await this.#session.open();
    const whole = new Set(
      (await findImages(main, 'provider', this.name, signal)).flatMap(
        ({ Tags }) => readImageTags(readTags(Tags))?.uploadId ?? [],
      ),
    );
    for (const region of await this.#regions()) {
      const images = await findImages(region, 'provider', this.name, signal);
      const used = new Set(images.flatMap(snapshotsOf));
      const finished = new Set<string>();
      for (const image of images) {
        const { uploadId } = readImageTags(readTags(image.Tags)) ?? {};
        const isPartial = image.State !== 'available' || (uploadId !== undefined && !whole.has(uploadId));
        if (uploadId !== undefined && isPartial) partial.push(partialImage(region, image, uploadId));
        else if (uploadId !== undefined) finished.add(uploadId);
      }
      for (const snapshot of await findSnapshots(region, 'provider', this.name, signal)) {
        const { SnapshotId: id = '', Tags } = snapshot;
        const { uploadId } = readImageTags(readTags(Tags)) ?? {};
        if (uploadId === undefined || used.has(id)) continue;
        // The snapshots of an AMI that is still being copied are unknown.
        if (whole.has(uploadId) && !finished.has(uploadId)) continue;
        if ((await usersOf(region, id, signal)).length === 0) {
          partial.push(partialSnapshot(region, snapshot, uploadId));
        }
      }
    }
    return partial;
  }

  async *diagnose(options: OperationOptions = {}): AsyncIterable<CheckResult> {
    const { diagnoseImages } = await import('./diagnose-aws.ts'); // only doctor needs it
    const { entry, session } = this.#options;
    yield* diagnoseImages({ entry, session, signal: signalOf(options) });
  }

  /** Aborts running requests. */
  close(): void {
    this.#session.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  async #prepare(
    request: UploadRequest,
    onProgress: AwsUpload['onProgress'],
    signal: AbortSignal,
  ): Promise<AwsUpload> {
    const { entry, logger, interval = 10 } = this.#options;
    const region = await this.#session.open();
    const records = this.#openRecords();
    return { region, entry, request, records, interval, limit: this.#limit, logger, onProgress, signal };
  }

  /** @returns the AMI's id */
  async #makeImage(upload: AwsUpload): Promise<string> {
    const { region, entry, request, signal } = upload;
    const [found] = await findImages(region, 'uploadId', request.uploadId, signal);
    const id = found?.ImageId ?? (await this.#newImage(upload, entry['import-method']));
    await distributeImage(upload, this.#session, id);
    return id;
  }

  async #newImage(upload: AwsUpload, method: AwsEntry['import-method']): Promise<string> {
    if (method === 'image') return await importImage(upload);
    const snapshot = await (method === 'snapshot' ? importSnapshot(upload) : uploadSnapshot(upload));
    return await registerImage(upload, snapshot);
  }

  #openRecords(): UploadRecords {
    if (this.#records !== undefined) return this.#records;
    throw new CloudError('bad-request', `provider ${this.name}`, 'this program uploads nothing');
  }

  /** Removes everything of an upload, the AMIs first. */
  async #remove(uploadId: string, signal: AbortSignal): Promise<void> {
    const { entry } = this.#options;
    const records = this.#openRecords();
    for (const region of await this.#regions()) {
      for (const image of await findImages(region, 'uploadId', uploadId, signal)) {
        await removeImage(region, image, signal);
      }
      for (const { SnapshotId: id = '' } of await findSnapshots(region, 'uploadId', uploadId, signal)) {
        await removeSnapshot(region, id, signal);
      }
    }
    const region = await this.#session.open();
    if (entry['import-method'] === 'ebs-direct') await removeSnapshots({ region, records, signal }, uploadId);
    else await removeImport({ region, entry, signal }, uploadId);
    await records.upload.remove(uploadId);
  }

  /** The main region, and those of the copies. */
  async #regions(): Promise<readonly AwsRegion[]> {
    const names = this.#options.entry['copy-regions'] ?? [];
    return await Promise.all([undefined, ...names].map(async (name) => await this.#session.open(name)));
  }
}

function toProviderImage(image: Image): ProviderImage | undefined {
  const tagged = readImageTags(readTags(image.Tags));
  if (tagged === undefined) return undefined;
  const { imageId, imageName, uploadId, format = 'raw', size = 0, checksums } = tagged;
  return {
    externalId: image.ImageId ?? '',
    uploadId,
    imageId,
    imageName,
    format,
    size,
    ...(checksums && { checksums }),
    uploadedAt: new Date(image.CreationDate ?? 0),
  };
}

function partialImage(region: AwsRegion, image: Image, uploadId: string): PartialUpload {
  const { ImageId: id = '', State: state } = image;
  return {
    uploadId,
    subject: `AMI ${id} in ${region.name} (${state})`,
    changedAt: new Date(image.CreationDate ?? 0),
    async remove(options = {}) {
      const signal = signalOf(options);
      const now = await getImage(region, id, signal);
      if (now === undefined || now.State !== state) return false;
      await removeImage(region, now, signal);
      return true;
    },
  };
}

function partialSnapshot(region: AwsRegion, snapshot: Snapshot, uploadId: string): PartialUpload {
  const { SnapshotId: id = '', State: state } = snapshot;
  return {
    uploadId,
    subject: `snapshot ${id} in ${region.name} (${state})`,
    changedAt: snapshot.StartTime ?? new Date(0),
    async remove(options = {}) {
      const signal = signalOf(options);
      const all = await findSnapshots(region, 'uploadId', uploadId, signal);
      const now = all.find(({ SnapshotId }) => SnapshotId === id);
      if (now?.State !== state || (await usersOf(region, id, signal)).length > 0) return false;
      await removeSnapshot(region, id, signal);
      return true;
    },
  };
}
