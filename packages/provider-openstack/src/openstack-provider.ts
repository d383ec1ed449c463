import type {
  CandidateOptions,
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
import { BandwidthLimit, isImageFormat, signalOf } from '@nodepool-builder/image-builder/module-kit';
import { findCandidates } from './candidate.ts';
import { claimSnapshot } from './claim-snapshot.ts';
import type { CloudSettings } from './cloud-settings.ts';
import type { GlanceImage } from './glance-image.ts';
import { ImageApi } from './image-api.ts';
import { importByTask } from './import-task.ts';
import { ObjectStore } from './object-store.ts';
import { findPartialUploads } from './partial-uploads.ts';
import { OpenStackSession, type SessionOptions } from './session/openstack-session.ts';
import type { OnTask } from './task-timing.ts';
import { ByteProgress } from './upload/byte-progress.ts';
import { type Carrier, GLANCE_DIRECT, PUT_FILE, webDownload } from './upload/carry.ts';
import type { ImageUpload } from './upload/carry-image.ts';
import {
  BUILD_ID,
  checksumsIn,
  claimProperties,
  diskFormat,
  IMAGE_NAME,
  imageProperties,
  PROVIDER_NAME,
  UPLOAD_ID,
} from './upload/image-properties.ts';
import { removeUpload, uploadImage } from './upload/image-upload.ts';
import type { StandstillLimits } from './upload/others-image.ts';
import { retry, type TransferRetries } from './upload/retry.ts';
import { uploadShared } from './upload/shared-upload.ts';

/** How an image comes into the cloud, where it is not a plain PUT of the file (`image-import`). */
export type ImageImport =
  | { readonly method: 'glance-direct' }
  | {
      readonly method: 'web-download';
      /** Where `images-dir` is served, as the cloud sees it. */
      readonly baseUrl: string;
    };

/** How an {@link OpenStackProvider} is set up. */
export interface OpenStackProviderOptions {
  /** `providers[].name`. */
  readonly name: string;
  /** The formats it takes, the best first: `image-type`, else the cloud's `image_format`. */
  readonly formats: readonly ImageFormat[];
  /** Finds the cloud and the credentials. It is called on first use, and again after a failure. */
  readonly settings: () => Promise<CloudSettings>;
  readonly logger: Logger;
  /** Rate limit and retries of requests. */
  readonly session?: Omit<SessionOptions, 'logger'>;
  /** Default: the file is put; or, if the cloud's settings say `image_api_use_tasks`, imported by a task. */
  readonly imageImport?: ImageImport;
  /** Seconds that the cloud may take from the last byte until the image is active. Default 3600. */
  readonly uploadTimeout?: number;
  /** Seconds in which the cloud may take no byte of the file, or give no answer after the last one. Default 300. */
  readonly stallTimeout?: number;
  /** When the upload of another process is taken over. Default: after 2 minutes without data, 2 hours with it. */
  readonly standstill?: StandstillLimits;
  /** Default: 3 attempts, the second after 5 s. */
  readonly retry?: TransferRetries;
  /** Bytes a second, for all uploads of this provider together. Default: no limit. */
  readonly bandwidthLimit?: number;
  /** Called for each request that succeeded. */
  readonly onTask?: OnTask;
}

const DEFAULT_RETRY: TransferRetries = { attempts: 3, delay: 5 };
const DEFAULT_STANDSTILL: StandstillLimits = { empty: 120, storing: 7200 };

/** A cloud once its settings are known. */
interface OpenCloud {
  readonly settings: CloudSettings;
  readonly session: OpenStackSession;
  readonly images: ImageApi;
  readonly carrier: Carrier;
}

/**
 * A provider that keeps images in Glance, the image service of an OpenStack cloud. The external id is Glance's.
 *
 * An image carries the upload's id from the moment it is made, so that whatever breaks off is found again, by this
 * process or by another. Uploads go out side by side; two calls for one upload follow each other.
 */
export class OpenStackProvider implements ImageProvider, Disposable {
  readonly name: string;
  readonly formats: readonly ImageFormat[];
  readonly #options: OpenStackProviderOptions;
  readonly #limit: BandwidthLimit | undefined;
  /** The end of what is under way for each upload. */
  readonly #turns = new Map<string, Promise<unknown>>();
  #cloud: Promise<OpenCloud> | undefined;

  constructor(options: OpenStackProviderOptions) {
    const { name, formats, bandwidthLimit } = options;
    this.name = name;
    this.formats = formats;
    this.#options = options;
    this.#limit = bandwidthLimit === undefined ? undefined : new BandwidthLimit(bandwidthLimit);
  }

  /** @throws OpenStackError */
  async upload(request: UploadRequest, options: OperationOptions = {}): Promise<UploadResult> {
    const signal = signalOf(options);
    const { logger, uploadTimeout: timeout = 3600, stallTimeout = 300 } = this.#options;
    const { standstill = DEFAULT_STANDSTILL } = this.#options;
    const { uploadId, imageId, file } = request;
    const progress = new ByteProgress(file.size, options.onProgress);
    return await this.#inTurn(uploadId, async () => {
      const { settings, images, carrier } = await this.#open(signal);
      const properties = imageProperties({
        provider: this.name,
        request,
        vendor: settings.disableVendorAgent,
      });
      const upload: ImageUpload = {
        images,
        carrier,
        request,
        properties,
        timeout,
        stallTimeout,
        progress,
        limit: this.#limit,
        logger,
        signal,
      };
      const name = `provider ${this.name}: upload of image ${imageId}`;
      const policy = { ...(this.#options.retry ?? DEFAULT_RETRY), name, logger, signal };
      const carry =
        request.shared === true && carrier.shareable
          ? async () => uploadShared({ ...upload, standstill, projectId: await images.projectId(signal) })
          : (attempt: number) => uploadImage(upload, attempt);
      const externalId = await retry(carry, policy);
      progress.end();
      return { externalId };
    });
  }

  /** @throws OpenStackError */
  async claim(
    externalId: string,
    request: ClaimRequest,
    options: OperationOptions = {},
  ): Promise<UploadResult | undefined> {
    const signal = signalOf(options);
    return await this.#inTurn(request.uploadId, async () => {
      const { settings, images } = await this.#open(signal);
      const vendor = settings.disableVendorAgent;
      const properties = claimProperties({ provider: this.name, request, vendor });
      return (await claimSnapshot(images, externalId, properties, signal)) ? { externalId } : undefined;
    });
  }

  /** @throws OpenStackError */
  async discard(uploadId: string, options: OperationOptions = {}): Promise<void> {
    const signal = signalOf(options);
    await this.#inTurn(uploadId, async () => {
      const { images, carrier } = await this.#open(signal);
      await removeUpload({ images, carrier, signal }, uploadId);
    });
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
    const found = await images.list({ [PROVIDER_NAME]: this.name, status: 'active' }, signal);
    return found.flatMap((image) => this.#providerImage(image) ?? []);
  }

  /** @throws OpenStackError */
  async candidates(filter: ImageFilter, options: CandidateOptions = {}): Promise<readonly ImageCandidate[]> {
    const signal = signalOf(options);
    const { images } = await this.#open(signal);
    return await findCandidates(filter, { ...options, images, signal });
  }

  /** @throws OpenStackError */
  async partialUploads(options: OperationOptions = {}): Promise<readonly PartialUpload[]> {
    const signal = signalOf(options);
    const { images, carrier } = await this.#open(signal);
    return await findPartialUploads({ provider: this.name, images, carrier, signal });
  }

  /** Aborts running operations; they reject with `aborted`. */
  close(): void {
    this.#cloud?.then(
      ({ session }) => session.close(),
      () => {}, // there is none
    );
    this.#cloud = undefined;
  }

  [Symbol.dispose](): void {
    this.close();
  }

  #providerImage(image: GlanceImage): ProviderImage | undefined {
    const { [BUILD_ID]: imageId, [IMAGE_NAME]: imageName } = image.properties;
    const format = this.#format(image.diskFormat);
    if (typeof imageId !== 'string' || typeof imageName !== 'string' || format === undefined)
      return undefined;
    const { id: externalId, size = 0, createdAt: uploadedAt } = image;
    const { [UPLOAD_ID]: uploadId } = image.properties;
    const checksums = checksumsIn(image.properties);
    return {
      externalId,
      ...(typeof uploadId === 'string' && { uploadId }),
      imageId,
      imageName,
      format,
      size,
      ...(checksums && { checksums }),
      uploadedAt,
    };
  }

  /** Several formats have one name in Glance: it is the one that this provider takes. */
  #format(name: string | undefined): ImageFormat | undefined {
    return (
      this.formats.find((format) => diskFormat(format) === name) ?? (isImageFormat(name) ? name : undefined)
    );
  }

  /** Work on one upload waits until earlier work on it has ended. */
  async #inTurn<T>(uploadId: string, work: () => Promise<T>): Promise<T> {
    const earlier = this.#turns.get(uploadId) ?? Promise.resolve();
    const turn = earlier.then(work, work);
    this.#turns.set(uploadId, turn);
    try {
      return await turn;
    } finally {
      if (this.#turns.get(uploadId) === turn) this.#turns.delete(uploadId);
    }
  }

  async #open(signal: AbortSignal): Promise<OpenCloud> {
    signal.throwIfAborted();
    this.#cloud ??= this.#connect().catch((error: unknown) => {
      this.#cloud = undefined;
      throw error;
    });
    return await this.#cloud;
  }

  async #connect(): Promise<OpenCloud> {
    const { logger, onTask } = this.#options;
    const settings = await this.#options.settings();
    const session = new OpenStackSession(settings, { ...this.#options.session, logger });
    const timing = onTask === undefined ? {} : { onTask };
    const images = new ImageApi({
      cloud: settings.name,
      client: session.client({ ...settings.image, version: 'v2' }),
      projectId: (signal) => session.projectId(signal),
      ...timing,
    });
    const carrier = settings.imageApiUseTasks
      ? importByTask({
          objects: new ObjectStore({ client: session.client(settings.objectStore), ...timing }),
        })
      : this.#carrier();
    return { settings, session, images, carrier };
  }

  #carrier(): Carrier {
    const { imageImport } = this.#options;
    if (imageImport === undefined) return PUT_FILE;
    return imageImport.method === 'glance-direct' ? GLANCE_DIRECT : webDownload(imageImport.baseUrl);
  }
}
