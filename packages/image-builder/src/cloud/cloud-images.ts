import { join } from 'node:path';
import { BandwidthLimit } from '../bandwidth-limit.ts';
import { signalOf } from '../cancellation.ts';
import { CloudError, cloudError } from '../cloud-error.ts';
import { errorMessage } from '../errors.ts';
import type { ImageFormat } from '../formats.ts';
import type { ImageFilter } from '../image-filter/image-filter.ts';
import { cloudImageName, fileTags, imageTags } from '../image-tags.ts';
import { KeyedQueue } from '../keyed-queue.ts';
import { steadyProgress } from '../progress.ts';
import type { SettingsSchema } from '../settings-schema.ts';
import { SILENT_LOGGER } from '../silent-logger.ts';
import type {
  CandidateOptions,
  ClaimRequest,
  DiscardOptions,
  ImageCandidate,
  ImageKey,
  ImageProvider,
  Logger,
  OperationOptions,
  PartialUpload,
  Progress,
  ProviderImage,
  UploadRequest,
  UploadResult,
} from '../types.ts';
import { type CloudImage, toCandidate, toProviderImage } from './cloud-image.ts';
import { notOurs } from './image-errors.ts';
import { UploadRecords } from './upload-records.ts';

/** Timeout of the cleanup after a failed upload, in milliseconds. The upload's own signal may have aborted. */
const CLEANUP_TIME = 120_000;

/** Keys of an entry under `providers` that {@link CloudImages} reads. */
export interface CloudEntry {
  readonly name: string;
  /** Max bytes per second, shared by all uploads. Default: no limit. */
  readonly 'bandwidth-limit'?: number | undefined;
}

/** Options of {@link CloudImages}: an entry under `providers`, and services of the calling program. */
export interface CloudImagesOptions<Entry extends CloudEntry = CloudEntry> {
  readonly entry: Entry;
  /** Accepted formats, the preferred one first. */
  readonly formats: readonly ImageFormat[];
  /** Directory for records of unfinished uploads. Absent if this process uploads nothing that needs a record. */
  readonly directory?: string | undefined;
  /** Default: none. */
  readonly logger?: Logger | undefined;
}

/** A running claim, see {@link ImageProvider.claim}. */
export interface CloudClaim<Request extends ClaimRequest = ClaimRequest> {
  readonly request: Request;
  /** Name in the cloud. */
  readonly name: string;
  /** Image properties: its metadata, and the tags that identify it. */
  readonly tags: Readonly<Record<string, string>>;
  /** Subject of messages: `provider west: upload of image debian-1`. */
  readonly subject: string;
  readonly signal: AbortSignal;
}

/** A running upload. */
export interface CloudUpload extends CloudClaim<UploadRequest> {
  readonly onProgress: (progress: Progress) => void;
  readonly limit: BandwidthLimit | undefined;
  /**
   * Called after a failure. Default: removes everything of the upload, unless it is shared and another process has
   * finished it. Replace it if something has to stay.
   */
  cleanUp: (signal: AbortSignal) => Promise<void>;
}

/** Part of an interrupted upload: an incomplete image, or data that the upload keeps elsewhere. */
export interface UploadPart extends Omit<PartialUpload, 'remove'> {
  /** Removes the part, unless it has changed since it was listed. Returns whether it was removed. */
  readonly remove: (signal: AbortSignal) => Promise<boolean>;
}

/**
 * A provider that stores images in a cloud. A subclass defines how the cloud's images are found, created and removed.
 * This class provides the rest:
 *
 * - Operations on one upload run one after the other. Operations on different uploads run concurrently.
 * - A failed upload is cleaned up. If the cleanup also fails, the error is retriable, and a later discard repeats the
 *   cleanup.
 * - The record of an upload is removed once the upload is finished or discarded.
 * - Only images whose tags contain the name of this provider are listed and deleted.
 *
 * All methods throw {@link CloudError}, or the reason of the signal.
 */
export abstract class CloudImages<
  Entry extends CloudEntry = CloudEntry,
  Native = unknown,
  const S extends SettingsSchema = SettingsSchema,
> implements ImageProvider, Disposable
{
  readonly name: string;
  readonly formats: readonly ImageFormat[];
  protected readonly entry: Entry;
  protected readonly logger: Logger;
  /** True if a list may not contain a new image yet. If true, ids that the caller knows are queried one by one. */
  protected readonly listsMayLag: boolean = false;
  protected readonly limit: BandwidthLimit | undefined;
  protected readonly records: UploadRecords<S>;
  readonly #needsRecords: boolean;
  readonly #uploadQueue = new KeyedQueue();
  readonly #imageQueue = new KeyedQueue();

  /**
   * @param record schema of a record of an unfinished upload. Absent if the cloud itself shows everything that an
   * upload creates
   * @param companions file extensions of files that belong to a record
   */
  constructor(
    { entry, formats, directory, logger = SILENT_LOGGER }: CloudImagesOptions<Entry>,
    record?: S,
    companions?: readonly string[],
  ) {
    const { name, 'bandwidth-limit': bandwidthLimit } = entry;
    this.name = name;
    this.formats = formats;
    this.entry = entry;
    this.logger = logger;
    this.limit = bandwidthLimit === undefined ? undefined : new BandwidthLimit(bandwidthLimit);
    this.#needsRecords = record !== undefined;
    const path = record && directory && join(directory, 'unfinished');
    this.records = new UploadRecords(name, path, record ?? ({} as S), companions);
  }

  /**
   * Lists at least all images with the tags of this provider, in any state.
   *
   * @param uploadId lists at least the images of this upload. Default: the images of all uploads
   */
  protected abstract listImages(
    signal: AbortSignal,
    uploadId?: string,
  ): Promise<readonly CloudImage<Native>[]>;

  /**
   * Finds one image, whoever created it; undefined if it does not exist. Default: searches {@link listImages}.
   *
   * @param _filter filter that the image must pass, if any: the result uses its spelling of equal values
   */
  protected async getImage(
    externalId: string,
    signal: AbortSignal,
    _filter?: ImageFilter,
  ): Promise<CloudImage<Native> | undefined> {
    return (await this.listImages(signal)).find((image) => image.externalId === externalId);
  }

  /** Checks the conditions of an upload before it starts. Nothing is cleaned up after an error. */
  protected async checkUpload(_upload: CloudUpload): Promise<void> {}

  /**
   * Creates the image of an upload, or finishes an earlier attempt. Writes a record before any request that creates
   * something which the cloud does not list.
   */
  protected abstract makeImage(upload: CloudUpload): Promise<UploadResult>;

  /** Removes an image of ours with everything that belongs to it. A missing image is not an error. */
  protected abstract removeImage(image: CloudImage<Native>, signal: AbortSignal): Promise<void>;

  /**
   * Removes everything of an upload: its images, complete or not, and its data elsewhere. Default: its images.
   *
   * @param _image image name and id, if the caller knows them
   */
  protected async removeUpload(uploadId: string, signal: AbortSignal, _image?: ImageKey): Promise<void> {
    for (const image of await this.ownImages(signal, uploadId)) await this.removeImage(image, signal);
  }

  /** Lists images of this provider, or of one of its uploads. */
  protected async ownImages(signal: AbortSignal, uploadId?: string): Promise<CloudImage<Native>[]> {
    return (await this.listImages(signal, uploadId)).filter(
      ({ isOwn, tagged }) =>
        isOwn && tagged?.provider === this.name && (uploadId ?? tagged.uploadId) === tagged.uploadId,
    );
  }

  /** Finds at least all images that pass a filter. Default: all complete images of this provider. */
  protected async searchImages(
    _filter: ImageFilter,
    _withRefused: boolean,
    signal: AbortSignal,
  ): Promise<readonly CloudImage<Native>[]> {
    return (await this.ownImages(signal)).filter(({ isComplete }) => isComplete);
  }

  /**
   * Turns a snapshot into the image of an upload. Returns false if it is missing or belongs to another upload. Default:
   * false.
   */
  protected async claimImage(_externalId: string, _claim: CloudClaim): Promise<boolean> {
    return false;
  }

  /** Lists the parts of interrupted uploads. Default: the incomplete images of this provider. */
  protected async listParts(signal: AbortSignal): Promise<readonly UploadPart[]> {
    const images = (await this.ownImages(signal)).filter(({ isComplete }) => !isComplete);
    return images.flatMap((image) => this.partOf(image) ?? []);
  }

  /**
   * Describes an incomplete image as a part of its upload; undefined if it belongs to none.
   *
   * @param remove default: {@link removeImage}
   */
  protected partOf(
    { externalId, version, status, name, createdAt, changedAt = createdAt, tagged }: CloudImage<Native>,
    subject = `image ${name}`,
    remove = async (now: CloudImage<Native>, signal: AbortSignal): Promise<void> =>
      this.removeImage(now, signal),
  ): UploadPart | undefined {
    if (tagged === undefined) return undefined;
    return {
      uploadId: tagged.uploadId,
      subject: `${subject} (${status})`,
      changedAt,
      remove: async (signal) => {
        const now = await this.getImage(externalId, signal);
        if (now === undefined || now.version !== version) return false;
        await remove(now, signal);
        return true;
      },
    };
  }

  async upload(request: UploadRequest, options: OperationOptions = {}): Promise<UploadResult> {
    const { uploadId, file, shared = false } = request;
    return await this.inTurn(uploadId, options, async (signal) => {
      if (this.#needsRecords) void this.records.required;
      const onProgress = steadyProgress(options.onProgress ?? (() => {}));
      const cleanUp = async (cleanup: AbortSignal): Promise<void> => {
        // The complete image of a shared upload belongs to another process.
        const images = shared ? await this.ownImages(cleanup, uploadId) : [];
        if (!images.some(({ isComplete }) => isComplete))
          await this.#removeUpload(uploadId, cleanup, request);
      };
      const claim = this.#claim(request, signal);
      const tags = { ...claim.tags, ...fileTags(file) };
      const upload: CloudUpload = { ...claim, tags, onProgress, limit: this.limit, cleanUp };
      await this.checkUpload(upload);
      try {
        const result = await this.makeImage(upload);
        await this.records.remove(uploadId);
        onProgress({ done: 1, total: 1 });
        return result;
      } catch (error) {
        throw await this.#cleanUpAfter(error, upload);
      }
    });
  }

  async claim(
    externalId: string,
    request: ClaimRequest,
    options: OperationOptions = {},
  ): Promise<UploadResult | undefined> {
    const isClaimed = await this.inTurn(request.uploadId, options, async (signal) =>
      this.claimImage(externalId, this.#claim(request, signal)),
    );
    return isClaimed ? { externalId } : undefined;
  }

  async discard(uploadId: string, options: DiscardOptions = {}): Promise<void> {
    await this.inTurn(uploadId, options, async (signal) =>
      this.#removeUpload(uploadId, signal, options.image),
    );
  }

  /** @throws CloudError `not-ours` for an image that this provider did not upload */
  async delete(externalId: string, options: OperationOptions = {}): Promise<void> {
    const signal = signalOf(options);
    const image = await this.getImage(externalId, signal);
    if (image === undefined) return;
    if (image.tagged?.provider !== this.name || !image.isOwn) throw notOurs(this.name, externalId);
    await this.inTurn(image.tagged.uploadId, { signal }, async () => this.removeImage(image, signal));
  }

  async list(options: OperationOptions = {}): Promise<readonly ProviderImage[]> {
    return (await this.ownImages(signalOf(options))).flatMap((image) => toProviderImage(image) ?? []);
  }

  async findImages(filter: ImageFilter, options: CandidateOptions = {}): Promise<readonly ImageCandidate[]> {
    const { known = [], withRefused = false } = options;
    const signal = signalOf(options);
    const found = new Map<string, CloudImage<Native>>();
    for (const image of await this.searchImages(filter, withRefused, signal)) {
      if (!found.has(image.externalId)) found.set(image.externalId, image);
    }
    const ids = new Set(Array.from(found.keys(), (id) => id.toLowerCase()));
    for (const id of this.listsMayLag ? known : []) {
      const image = ids.has(id.toLowerCase()) ? undefined : await this.getImage(id, signal, filter);
      if (image !== undefined) found.set(image.externalId, image);
    }
    return Array.from(found.values(), toCandidate);
  }

  async listPartialUploads(options: OperationOptions = {}): Promise<readonly PartialUpload[]> {
    const parts = await this.listParts(signalOf(options));
    return parts.map(({ remove, ...part }) => ({
      ...part,
      remove: async (again = {}) => await this.inTurn(part.uploadId, again, remove),
    }));
  }

  /** Aborts running requests. */
  close(): void {}

  [Symbol.dispose](): void {
    this.close();
  }

  /** Runs work after earlier work on the same upload has ended. */
  protected async inTurn<T>(
    uploadId: string,
    options: OperationOptions,
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    return await this.#uploadQueue.run(uploadId, options, work);
  }

  /**
   * Runs work after earlier work on the same image has ended, for providers in which all uploads of an image have one
   * external id. The last upload to start then owns the image, and discarding an earlier one, whose job was lost, keeps
   * it.
   */
  protected async inImageTurn<T>(
    externalId: string,
    options: OperationOptions,
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    return await this.#imageQueue.run(externalId, options, work);
  }

  #claim<Request extends ClaimRequest>(request: Request, signal: AbortSignal): CloudClaim<Request> {
    const tags = { ...request.metadata, ...imageTags(this.name, request) };
    const subject = `provider ${this.name}: upload of image ${request.imageId}`;
    return { request, name: cloudImageName(request), tags, subject, signal };
  }

  async #removeUpload(uploadId: string, signal: AbortSignal, image?: ImageKey): Promise<void> {
    await this.removeUpload(uploadId, signal, image);
    await this.records.remove(uploadId);
  }

  /** @returns the error to throw: retriable if the cleanup failed, so that the upload's discard repeats it */
  async #cleanUpAfter(error: unknown, { signal, cleanUp, subject }: CloudUpload): Promise<unknown> {
    try {
      await cleanUp(AbortSignal.timeout(CLEANUP_TIME));
      return error;
    } catch (failure) {
      this.logger.warn(
        `${subject}: the cleanup after its failure failed and will be repeated: ${String(failure)}`,
        { error: failure },
      );
      // After an abort, the upload stays on record in any case.
      if (signal.aborted) return error;
      if (!(error instanceof CloudError)) {
        const reason = `${errorMessage(error)}; its cleanup also failed`;
        return cloudError('image-failed', subject, reason, { cause: error });
      }
      error.retriable = true;
      return error;
    }
  }
}
