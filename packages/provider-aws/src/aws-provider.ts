import type { Image } from '@aws-sdk/client-ec2';
import type {
  CheckResult,
  ClaimRequest,
  ImageFilter,
  ImageFormat,
  Logger,
  OperationOptions,
  UploadResult,
} from '@nodepool-builder/image-builder';
import {
  type CloudImage,
  CloudImages,
  type CloudUpload,
  signalOf,
  type UploadPart,
  UploadRecords,
} from '@nodepool-builder/image-builder/module-kit';
import { describeImage, findImage, searchImages } from './ami-search.ts';
import { imagesWith, removeImage, removeSnapshot, snapshotsWith } from './amis.ts';
import { type AwsRegion, AwsSession, type SessionOptions } from './aws-session.ts';
import type { AwsEntry } from './aws-settings.ts';
import { type AwsUpload, BLOCKS, SnapshotBases, UPLOAD } from './aws-upload.ts';
import { diagnoseImages } from './diagnose-aws.ts';
import { removeSnapshots, uploadSnapshot } from './ebs-direct.ts';
import { claimCapture } from './instance/capture.ts';
import { listParts } from './partial-uploads.ts';
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
export class AwsProvider extends CloudImages<Image, typeof UPLOAD> {
  protected override readonly listsMayLag = true;
  readonly #options: AwsProviderOptions;
  readonly #session: AwsSession;
  readonly #bases: SnapshotBases;

  constructor(options: AwsProviderOptions) {
    const { entry, formats, session, directory, logger } = options;
    const { name, 'bandwidth-limit': bandwidthLimit } = entry;
    const records = new UploadRecords(name, directory && `${directory}/unfinished`, UPLOAD, [BLOCKS]);
    super({ name, formats, logger, bandwidthLimit, records });
    this.#options = options;
    this.#session = new AwsSession({ ...session, name });
    this.#bases = new SnapshotBases(`${directory}/bases`);
  }

  protected async ownImages(signal: AbortSignal): Promise<readonly CloudImage<Image>[]> {
    const images = await imagesWith(await this.#session.open(), 'provider', this.name, signal);
    return images.map((image) => describeImage(image));
  }

  protected async getImage(externalId: string, signal: AbortSignal): Promise<CloudImage<Image> | undefined> {
    return await findImage(await this.#session.open(), externalId, signal);
  }

  protected override async searchImages(
    filter: ImageFilter,
    withRefused: boolean,
    signal: AbortSignal,
  ): Promise<readonly CloudImage<Image>[]> {
    return await searchImages(await this.#session.open(), filter, withRefused, signal);
  }

  protected override async checkUpload(): Promise<void> {
    void this.records.required;
    await this.#session.open();
  }

  protected async makeImage({ request, ...running }: CloudUpload): Promise<UploadResult> {
    const { entry, logger, interval = 10 } = this.#options;
    const region = await this.#session.open();
    const { records } = this;
    const upload = { ...running, request, region, entry, records, bases: this.#bases, interval, logger };
    const [found] = await imagesWith(region, 'uploadId', request.uploadId, running.signal);
    const externalId = found?.ImageId ?? (await newImage(upload));
    await distributeImage(upload, this.#session, externalId);
    return { externalId };
  }

  protected override async claimImage(
    externalId: string,
    request: ClaimRequest,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { entry, interval = 10 } = this.#options;
    const region = await this.#session.open();
    if (!(await claimCapture(region, entry, externalId, request, signal))) return false;
    await distributeImage({ region, entry, request, interval, signal }, this.#session, externalId);
    return true;
  }

  /** Removes the copies first. */
  protected async removeImage({ native, tagged }: CloudImage<Image>, signal: AbortSignal): Promise<void> {
    const [main, ...others] = await this.#regions();
    for (const region of others) {
      if (tagged === undefined) continue;
      const copies = await imagesWith(region, 'uploadId', tagged.uploadId, signal);
      for (const copy of copies) await removeImage(region, copy, signal);
    }
    await removeImage(main, native, signal);
  }

  /** Removes the AMIs first. */
  protected async removeUpload(uploadId: string, signal: AbortSignal): Promise<void> {
    const { entry } = this.#options;
    const records = this.records.required;
    const regions = await this.#regions();
    for (const region of regions) {
      for (const image of await imagesWith(region, 'uploadId', uploadId, signal)) {
        await removeImage(region, image, signal);
      }
      for (const { SnapshotId: id = '' } of await snapshotsWith(region, 'uploadId', uploadId, signal)) {
        await removeSnapshot(region, id, signal);
      }
    }
    const [region] = regions;
    if (entry['import-method'] === 'ebs-direct') await removeSnapshots({ region, records, signal }, uploadId);
    else await removeImport({ region, entry, signal }, uploadId);
  }

  protected override async listParts(signal: AbortSignal): Promise<readonly UploadPart[]> {
    return await listParts(this.name, await this.#regions(), signal);
  }

  async *diagnose(options: OperationOptions = {}): AsyncIterable<CheckResult> {
    const { entry, session } = this.#options;
    yield* diagnoseImages({ entry, session, signal: signalOf(options) });
  }

  override close(): void {
    this.#session.close();
  }

  /** The main region, and those of the copies. */
  async #regions(): Promise<readonly [AwsRegion, ...AwsRegion[]]> {
    const { 'copy-regions': copies = [] } = this.#options.entry;
    const [main, ...others] = await Promise.all([
      this.#session.open(),
      ...copies.map(async (name) => await this.#session.open(name)),
    ]);
    return [main, ...others];
  }
}

/** Makes an AMI of the file. @returns its id */
async function newImage(upload: AwsUpload): Promise<string> {
  const { 'import-method': method } = upload.entry;
  if (method === 'image') return await importImage(upload);
  const snapshot = await (method === 'snapshot' ? importSnapshot(upload) : uploadSnapshot(upload));
  return await registerImage(upload, snapshot);
}
