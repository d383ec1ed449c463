import type {
  CheckResult,
  ImageFilter,
  ImageFormat,
  OperationOptions,
  UploadResult,
} from '@nodepool-builder/image-builder';
import {
  type CloudClaim,
  type CloudEntry,
  type CloudImage,
  CloudImages,
  type CloudUpload,
  IMAGE_TAGS,
  signalOf,
  type UploadPart,
  unlessAbsent,
} from '@nodepool-builder/image-builder/plugin';
import { diagnoseCloud } from './diagnose-cloud.ts';
import { type GlanceImage, reportedDigests } from './glance-image.ts';
import { ImageApi } from './image-api.ts';
import { describeImage, INCOMPLETE } from './image-description.ts';
import { downloadImage } from './image-download.ts';
import { imageQueries } from './image-search.ts';
import { claimSnapshot } from './instance/capture.ts';
import { ObjectStore } from './object-store.ts';
import { type CloudOptions, LazyCloud } from './session/openstack-session.ts';
import { claimProperties, imageProperties } from './upload/image-properties.ts';
import { type ImageUpload, removeUpload, uploadImage } from './upload/image-upload.ts';
import { importByTask } from './upload/import-task.ts';
import { DEFAULT_RETRIES, retry, type TransferRetries } from './upload/retry.ts';
import { type StandstillLimits, uploadShared } from './upload/shared-upload.ts';
import { type ImageImport, methodOf, type UploadMethod } from './upload/upload-method.ts';
import { isConverted } from './upload/verify-image.ts';

export interface OpenStackProviderOptions extends CloudOptions {
  /** `providers[].name`. */
  readonly name: string;
  /** Accepted formats, the preferred one first: `image-type`, else the cloud's `image_format`. */
  readonly formats: readonly ImageFormat[];
  /** Import method of Glance. Default: a PUT of the file, or a task if the cloud has `image_api_use_tasks`. */
  readonly imageImport?: ImageImport | undefined;
  /** Max seconds from the last byte until the image is active. Default 3600. */
  readonly uploadTimeout?: number | undefined;
  /** Time limits before taking over another process's upload. Default: 2 minutes without data, 2 hours with data. */
  readonly standstill?: StandstillLimits;
  /** Retries of an upload. Default: 3 attempts, the second after 5 s. */
  readonly retry?: TransferRetries;
  /** Max bytes per second, shared by all uploads of this provider. Default: no limit. */
  readonly bandwidthLimit?: number | undefined;
}

const DEFAULT_STANDSTILL: StandstillLimits = { empty: 120, storing: 7200 };

interface ImageCloud {
  readonly images: ImageApi;
  readonly method: UploadMethod;
  /** `disable_vendor_agent`. */
  readonly vendor: Readonly<Record<string, string>>;
}

/**
 * A provider that stores images in Glance, OpenStack's image service. The external id is the Glance image id.
 *
 * An image has the upload id as a property from its creation, so any process can find it after an interruption.
 */
export class OpenStackProvider extends CloudImages<CloudEntry, GlanceImage> {
  protected override readonly listsMayLag = true;
  readonly #options: OpenStackProviderOptions;
  readonly #cloud: LazyCloud<ImageCloud>;

  constructor(options: OpenStackProviderOptions) {
    const { name, bandwidthLimit, formats, logger } = options;
    super({ entry: { name, 'bandwidth-limit': bandwidthLimit }, formats, logger });
    this.#options = options;
    this.#cloud = new LazyCloud(options, (session) => {
      const { imageApiUseTasks, disableVendorAgent: vendor } = session.settings;
      const method = imageApiUseTasks
        ? importByTask(new ObjectStore(session))
        : methodOf(options.imageImport);
      return { images: new ImageApi(session), method, vendor };
    });
  }

  protected async listImages(signal: AbortSignal): Promise<readonly CloudImage<GlanceImage>[]> {
    const { images } = await this.#cloud.open();
    const found = await images.list({ [IMAGE_TAGS.provider]: this.name }, signal);
    return await this.#describe(found, signal);
  }

  protected override async getImage(
    externalId: string,
    signal: AbortSignal,
  ): Promise<CloudImage<GlanceImage> | undefined> {
    const { images } = await this.#cloud.open();
    const image = await images.get(externalId, signal).catch(unlessAbsent);
    return (await this.#describe(image === undefined ? [] : [image], signal))[0];
  }

  protected override async searchImages(
    filter: ImageFilter,
    withRefused: boolean,
    signal: AbortSignal,
  ): Promise<readonly CloudImage<GlanceImage>[]> {
    const { images } = await this.#cloud.open();
    const found: GlanceImage[] = [];
    for (const query of imageQueries(filter, { projectId: await images.projectId(signal), withRefused })) {
      found.push(...(await images.find(query, signal)));
    }
    return await this.#describe(found, signal);
  }

  protected async makeImage(running: CloudUpload): Promise<UploadResult> {
    running.cleanUp = async () => {}; // Each attempt cleans up after itself.
    const { request, subject: name, signal } = running;
    const { images, method, vendor } = await this.#cloud.open();
    const { logger, uploadTimeout: timeout = 3600 } = this.#options;
    const { standstill = DEFAULT_STANDSTILL, retry: retries = DEFAULT_RETRIES } = this.#options;
    const properties = imageProperties({ provider: this.name, request, vendor });
    const upload: ImageUpload = { ...running, images, method, properties, timeout, logger };
    if (request.shared === true && method.shareable) {
      const attempt = async (): Promise<string> =>
        uploadShared({ ...upload, standstill, projectId: await images.projectId(signal) });
      return { externalId: await retry(attempt, { ...retries, name, logger, signal }) };
    }
    const attempt = async (number: number): Promise<GlanceImage> => uploadImage(upload, number);
    const image = await retry(attempt, { ...retries, name, logger, signal });
    const reported = reportedDigests(image);
    return {
      externalId: image.id,
      ...(Object.keys(reported).length > 0 && { reported }),
      ...(isConverted(image, request.file) && { isConverted: true }),
    };
  }

  protected override async claimImage(externalId: string, { request, signal }: CloudClaim): Promise<boolean> {
    const { images, vendor } = await this.#cloud.open();
    const properties = claimProperties({ provider: this.name, request, vendor });
    return await claimSnapshot(images, externalId, properties, signal);
  }

  protected async removeImage({ externalId }: CloudImage<GlanceImage>, signal: AbortSignal): Promise<void> {
    const { images } = await this.#cloud.open();
    await images.delete(externalId, signal);
  }

  protected override async removeUpload(uploadId: string, signal: AbortSignal): Promise<void> {
    await removeUpload({ ...(await this.#cloud.open()), signal }, uploadId);
  }

  protected override async listParts(signal: AbortSignal): Promise<readonly UploadPart[]> {
    const { images, method } = await this.#cloud.open();
    const own = await this.ownImages(signal);
    const incomplete = own.filter(({ status }) => INCOMPLETE.includes(status));
    return [
      ...incomplete.flatMap((image) => this.partOf(image, `image ${image.externalId}`) ?? []),
      ...((await method.listParts?.(images, signal)) ?? []),
    ];
  }

  /**
   * Downloads an image to a sparse file.
   *
   * @throws CloudError, ImageError `image-not-found`
   */
  async download(externalId: string, path: string, options: OperationOptions = {}): Promise<void> {
    const { logger, retry: retries = DEFAULT_RETRIES } = this.#options;
    signalOf(options).throwIfAborted();
    const { images } = await this.#cloud.open();
    await downloadImage({ images, externalId, path, logger, retries }, options);
  }

  async *diagnose(options: OperationOptions = {}): AsyncIterable<CheckResult> {
    const { imageImport, ...cloud } = this.#options;
    yield* diagnoseCloud({ ...cloud, importMethod: imageImport?.method }, signalOf(options));
  }

  /** Aborts running operations; they reject with `aborted`. */
  override close(): void {
    this.#cloud.close();
  }

  async #describe(
    images: readonly GlanceImage[],
    signal: AbortSignal,
  ): Promise<readonly CloudImage<GlanceImage>[]> {
    const projectId = await (await this.#cloud.open()).images.projectId(signal);
    return images.map((image) => describeImage(image, projectId, this.formats));
  }
}
