import type {
  CandidateOptions,
  CheckResult,
  ClaimRequest,
  ImageCandidate,
  ImageFilter,
  ImageFormat,
  ImageProvider,
  OperationOptions,
  PartialUpload,
  ProviderImage,
  UploadRequest,
  UploadResult,
} from '@nodepool-builder/image-builder';
import {
  BandwidthLimit,
  IMAGE_TAGS,
  isImageFormat,
  KeyedQueue,
  signalOf,
  steadyProgress,
} from '@nodepool-builder/image-builder/module-kit';
import { findCandidates } from './candidates.ts';
import { diagnoseCloud } from './diagnose-cloud.ts';
import { createdAt, dataSize, type GlanceImage, reportedDigests } from './glance-image.ts';
import { ImageApi } from './image-api.ts';
import { downloadImage } from './image-download.ts';
import { claimSnapshot } from './instance/capture.ts';
import { ObjectStore } from './object-store.ts';
import { findPartialUploads } from './partial-uploads.ts';
import { type CloudOptions, LazyCloud } from './session/openstack-session.ts';
import { checksumsIn, claimProperties, diskFormat, imageProperties } from './upload/image-properties.ts';
import { type ImageUpload, removeUpload, uploadImage } from './upload/image-upload.ts';
import { importByTask } from './upload/import-task.ts';
import { DEFAULT_RETRIES, retry, type TransferRetries } from './upload/retry.ts';
import { type StandstillLimits, uploadShared } from './upload/shared-upload.ts';
import { GLANCE_DIRECT, PUT_FILE, type UploadMethod, webDownload } from './upload/upload-method.ts';
import { isConverted } from './upload/verify-image.ts';

/** Import method of Glance, in place of a PUT of the file (`image-import`). */
export type ImageImport =
  | { readonly method: 'glance-direct' }
  | {
      readonly method: 'web-download';
      /** URL of `images-dir`, as the cloud sees it. */
      readonly baseUrl: string;
    };

export interface OpenStackProviderOptions extends CloudOptions {
  /** `providers[].name`. */
  readonly name: string;
  /** Accepted formats, the preferred one first: `image-type`, else the cloud's `image_format`. */
  readonly formats: readonly ImageFormat[];
  /** Default: a PUT of the file, or a task if the cloud's settings have `image_api_use_tasks`. */
  readonly imageImport?: ImageImport | undefined;
  /** Seconds from the last byte until the image is active. Default 3600. */
  readonly uploadTimeout?: number | undefined;
  /** Seconds in which the cloud reads no byte of the file, or gives no answer after the last one. Default 300. */
  readonly stallTimeout?: number;
  /** When to take over the upload of another process. Default: after 2 minutes without data, 2 hours with data. */
  readonly standstill?: StandstillLimits;
  /** Default: 3 attempts, the second after 5 s. */
  readonly retry?: TransferRetries;
  /** Bytes a second, for all uploads of this provider together. Default: no limit. */
  readonly bandwidthLimit?: number | undefined;
}

const DEFAULT_STANDSTILL: StandstillLimits = { empty: 120, storing: 7200 };

interface ImageCloud {
  readonly images: ImageApi;
  readonly method: UploadMethod;
  /** `disable_vendor_agent`. */
  readonly vendor: Readonly<Record<string, string>>;
}

/** An image after its upload. The digests of one that another process may have uploaded are not known. */
type StoredImage = GlanceImage | { readonly id: string };

/**
 * A provider that stores images in Glance, the image service of OpenStack. The external id is Glance's.
 *
 * An image has the upload's id from its creation, so that any process can find it after an interruption. Uploads run
 * concurrently, but operations on one upload run one after the other.
 */
export class OpenStackProvider implements ImageProvider, Disposable {
  readonly name: string;
  readonly formats: readonly ImageFormat[];
  readonly #options: OpenStackProviderOptions;
  readonly #limit: BandwidthLimit | undefined;
  readonly #cloud: LazyCloud<ImageCloud>;
  readonly #turns = new KeyedQueue();

  constructor(options: OpenStackProviderOptions) {
    const { name, formats, bandwidthLimit, imageImport } = options;
    this.name = name;
    this.formats = formats;
    this.#options = options;
    this.#limit = bandwidthLimit === undefined ? undefined : new BandwidthLimit(bandwidthLimit);
    this.#cloud = new LazyCloud(options, (session) => {
      const { imageApiUseTasks, disableVendorAgent: vendor } = session.settings;
      const method = imageApiUseTasks ? importByTask(new ObjectStore(session)) : methodOf(imageImport);
      return { images: new ImageApi(session), method, vendor };
    });
  }

  /** @throws OpenStackError */
  async upload(request: UploadRequest, options: OperationOptions = {}): Promise<UploadResult> {
    const signal = signalOf(options);
    const { logger, uploadTimeout: timeout = 3600, stallTimeout = 300 } = this.#options;
    const { standstill = DEFAULT_STANDSTILL, retry: retries = DEFAULT_RETRIES } = this.#options;
    const onProgress = steadyProgress(options.onProgress ?? (() => {}));
    const stored = await this.#inTurn(request.uploadId, signal, async ({ images, method, vendor }) => {
      const upload: ImageUpload = {
        images,
        method,
        request,
        properties: imageProperties({ provider: this.name, request, vendor }),
        timeout,
        stallTimeout,
        onProgress,
        limit: this.#limit,
        logger,
        signal,
      };
      const name = `provider ${this.name}: upload of image ${request.imageId}`;
      const attempt =
        request.shared === true && method.shareable
          ? async (): Promise<StoredImage> => {
              const projectId = await images.projectId(signal);
              return { id: await uploadShared({ ...upload, standstill, projectId }) };
            }
          : (number: number): Promise<StoredImage> => uploadImage(upload, number);
      return await retry(attempt, { ...retries, name, logger, signal });
    });
    onProgress({ done: 1, total: 1 });
    const reported = 'status' in stored ? reportedDigests(stored) : {};
    return {
      externalId: stored.id,
      ...(Object.keys(reported).length > 0 && { reported }),
      ...('status' in stored && isConverted(stored, request.file) && { isConverted: true }),
    };
  }

  /** @throws OpenStackError */
  async claim(
    externalId: string,
    request: ClaimRequest,
    options: OperationOptions = {},
  ): Promise<UploadResult | undefined> {
    const signal = signalOf(options);
    return await this.#inTurn(request.uploadId, signal, async ({ images, vendor }) => {
      const properties = claimProperties({ provider: this.name, request, vendor });
      return (await claimSnapshot(images, externalId, properties, signal)) ? { externalId } : undefined;
    });
  }

  /** @throws OpenStackError */
  async discard(uploadId: string, options: OperationOptions = {}): Promise<void> {
    const signal = signalOf(options);
    await this.#inTurn(uploadId, signal, ({ images, method }) =>
      removeUpload({ images, method, signal }, uploadId),
    );
  }

  /** @throws OpenStackError */
  async delete(externalId: string, options: OperationOptions = {}): Promise<void> {
    const signal = signalOf(options);
    const { images } = await this.#open(signal);
    await images.delete(externalId, signal);
  }

  /** @throws OpenStackError */
  async list(options: OperationOptions = {}): Promise<readonly ProviderImage[]> {
    const signal = signalOf(options);
    const { images } = await this.#open(signal);
    const found = await images.list({ [IMAGE_TAGS.provider]: this.name, status: 'active' }, signal);
    return found.flatMap((image) => this.#providerImage(image) ?? []);
  }

  /** @throws OpenStackError */
  async findImages(filter: ImageFilter, options: CandidateOptions = {}): Promise<readonly ImageCandidate[]> {
    const signal = signalOf(options);
    const { images } = await this.#open(signal);
    return await findCandidates(filter, { ...options, images, signal });
  }

  /**
   * Downloads an image to a file, with holes for zeros.
   *
   * @throws OpenStackError, ImageError `image-not-found`
   */
  async download(externalId: string, path: string, options: OperationOptions = {}): Promise<void> {
    const { logger, retry: retries = DEFAULT_RETRIES } = this.#options;
    const { images } = await this.#open(signalOf(options));
    await downloadImage({ images, externalId, path, logger, retries }, options);
  }

  /** @throws OpenStackError */
  async listPartialUploads(options: OperationOptions = {}): Promise<readonly PartialUpload[]> {
    const signal = signalOf(options);
    const { images, method } = await this.#open(signal);
    return await findPartialUploads({ provider: this.name, images, method, signal });
  }

  async *diagnose(options: OperationOptions = {}): AsyncIterable<CheckResult> {
    const { imageImport, ...cloud } = this.#options;
    yield* diagnoseCloud({ ...cloud, importMethod: imageImport?.method }, signalOf(options));
  }

  /** Aborts running operations; they reject with `aborted`. */
  close(): void {
    this.#cloud.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  #providerImage(image: GlanceImage): ProviderImage | undefined {
    const {
      [IMAGE_TAGS.imageId]: imageId,
      [IMAGE_TAGS.imageName]: imageName,
      [IMAGE_TAGS.uploadId]: uploadId,
    } = image;
    const format = this.#format(image.disk_format);
    if (typeof imageId !== 'string' || typeof imageName !== 'string' || format === undefined)
      return undefined;
    const checksums = checksumsIn(image);
    return {
      externalId: image.id,
      ...(typeof uploadId === 'string' && { uploadId }),
      imageId,
      imageName,
      format,
      size: dataSize(image) ?? 0,
      ...(checksums && { checksums }),
      reported: reportedDigests(image),
      uploadedAt: createdAt(image),
    };
  }

  /**
   * Glance has one name for several formats; this provider's own format takes precedence, also over the name of a format
   * that only the cloud knows, to which it has converted the image.
   */
  #format(name: unknown): ImageFormat | undefined {
    const own = this.formats.find((format) => diskFormat(format) === name);
    return own ?? (isImageFormat(name) ? name : this.formats[0]);
  }

  /** Runs work after earlier work on the same upload has ended. */
  async #inTurn<T>(
    uploadId: string,
    signal: AbortSignal,
    work: (cloud: ImageCloud) => Promise<T>,
  ): Promise<T> {
    return await this.#turns.run(uploadId, { signal }, async () => await work(await this.#open(signal)));
  }

  async #open(signal: AbortSignal): Promise<ImageCloud> {
    signal.throwIfAborted();
    return await this.#cloud.open();
  }
}

function methodOf(imageImport: ImageImport | undefined): UploadMethod {
  if (imageImport === undefined) return PUT_FILE;
  return imageImport.method === 'glance-direct' ? GLANCE_DIRECT : webDownload(imageImport.baseUrl);
}
