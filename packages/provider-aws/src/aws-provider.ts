import type { Image } from '@aws-sdk/client-ec2';
import type {
  CheckResult,
  ImageFilter,
  OperationOptions,
  UploadResult,
} from '@nodepool-builder/image-builder';
import {
  type CloudClaim,
  type CloudImage,
  CloudImages,
  type CloudImagesOptions,
  type CloudUpload,
  signalOf,
  type UploadPart,
} from '@nodepool-builder/image-builder/plugin';
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

export interface AwsProviderOptions extends CloudImagesOptions<AwsEntry> {
  readonly session: Omit<SessionOptions, 'name'>;
  /** Max seconds between two polls of a pending resource. Default 10. */
  readonly interval?: number | undefined;
}

/** A provider that stores images as AMIs in EC2. The external id is the AMI id. */
export class AwsProvider extends CloudImages<AwsEntry, Image, typeof UPLOAD> {
  protected override readonly listsMayLag = true;
  readonly #session: AwsSession;
  readonly #sessionOptions: AwsProviderOptions['session'];
  readonly #bases: SnapshotBases;
  readonly #interval: number;

  constructor(options: AwsProviderOptions) {
    super(options, UPLOAD, [BLOCKS]);
    const { session, directory, interval = 10 } = options;
    this.#session = new AwsSession({ ...session, name: this.name });
    this.#sessionOptions = session;
    this.#bases = new SnapshotBases(`${directory}/bases`);
    this.#interval = interval;
  }

  protected async listImages(signal: AbortSignal): Promise<readonly CloudImage<Image>[]> {
    const images = await imagesWith(await this.#session.open(), 'provider', this.name, signal);
    return images.map((image) => describeImage(image));
  }

  protected override async getImage(
    externalId: string,
    signal: AbortSignal,
  ): Promise<CloudImage<Image> | undefined> {
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
    await this.#session.open();
  }

  protected async makeImage(running: CloudUpload): Promise<UploadResult> {
    const { entry, records, logger } = this;
    const region = await this.#session.open();
    const site = { region, entry, records, logger, bases: this.#bases, interval: this.#interval };
    const upload = { ...running, ...site };
    const [found] = await imagesWith(region, 'uploadId', running.request.uploadId, running.signal);
    const externalId = found?.ImageId ?? (await newImage(upload));
    await distributeImage(upload, this.#session, externalId);
    return { externalId };
  }

  protected override async claimImage(externalId: string, claim: CloudClaim): Promise<boolean> {
    const { entry } = this;
    const region = await this.#session.open();
    if (!(await claimCapture(region, entry, externalId, claim))) return false;
    await distributeImage({ ...claim, region, entry, interval: this.#interval }, this.#session, externalId);
    return true;
  }

  /** Removes the copies before the AMI. */
  protected async removeImage({ native, tagged }: CloudImage<Image>, signal: AbortSignal): Promise<void> {
    const [main, ...others] = await this.#regions();
    for (const region of others) {
      if (tagged === undefined) continue;
      const copies = await imagesWith(region, 'uploadId', tagged.uploadId, signal);
      for (const copy of copies) await removeImage(region, copy, signal);
    }
    await removeImage(main, native, signal);
  }

  /** Removes the AMIs before the other resources. */
  protected override async removeUpload(uploadId: string, signal: AbortSignal): Promise<void> {
    const { entry } = this;
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
    const signal = signalOf(options);
    yield* diagnoseImages({ entry: this.entry, session: this.#sessionOptions, signal });
  }

  override close(): void {
    this.#session.close();
  }

  /** Opens the main region and the regions of the copies. */
  async #regions(): Promise<readonly [AwsRegion, ...AwsRegion[]]> {
    const { 'copy-regions': copies = [] } = this.entry;
    const [main, ...others] = await Promise.all([
      this.#session.open(),
      ...copies.map(async (name) => await this.#session.open(name)),
    ]);
    return [main, ...others];
  }
}

/** Creates an AMI from the file. @returns its id */
async function newImage(upload: AwsUpload): Promise<string> {
  const { 'import-method': method } = upload.entry;
  if (method === 'image') return await importImage(upload);
  const snapshot = await (method === 'snapshot' ? importSnapshot(upload) : uploadSnapshot(upload));
  return await registerImage(upload, snapshot);
}
