import type { CheckResult } from './diagnosis/check-result.ts';
import type { ImageFormat } from './formats.ts';
import type { ImageFilter } from './image-filter/image-filter.ts';

/** Receives log lines; a winston logger implements it. */
export interface Logger {
  debug(message: string, meta?: object): unknown;
  info(message: string, meta?: object): unknown;
  warn(message: string, meta?: object): unknown;
  error(message: string, meta?: object): unknown;
}

/**
 * Progress of a long operation. `done` and `total` have the same unit: bytes or percent. `done` decreases only when a
 * transfer starts again.
 */
export interface Progress {
  readonly done: number;
  readonly total: number;
  /** Subject of the wait, such as disk space. Absent while the operation works. */
  readonly waiting?: string;
  /** The current phase of the operation, such as `install.d`; absent if it has no phases. */
  readonly phase?: string;
}

/** Options of every long call. */
export interface OperationOptions {
  /** Aborts the call, which then rejects with the signal's reason as the cause. */
  readonly signal?: AbortSignal;
  /** Called during the work, at most a few times a second. */
  readonly onProgress?: (progress: Progress) => void;
}

/** Options of the method `diagnose` of modules and providers. */
export interface CheckOptions extends OperationOptions {
  /** Size of the largest image on this host in bytes; undefined if it has none. */
  readonly largestImage?: number | undefined;
}

/** Hexadecimal digests of a file. */
export interface Checksums {
  readonly md5: string;
  readonly sha256: string;
}

/** One file of an image: `<images-dir>/<image-id>.<extension of the format>`. */
export interface ImageFile {
  readonly format: ImageFormat;
  /** Absolute path. */
  readonly path: string;
  /** Size in bytes, holes included. */
  readonly size: number;
  /** Checksums of a file that a builder of this project made, unless it has changed since. */
  readonly checksums?: Checksums;
}

/** An image that was created in a provider by capturing an instance there. */
export interface Snapshot {
  /** `providers[].name`. */
  readonly provider: string;
  readonly externalId: string;
}

/** An image in the local directory: one id, one or more formats. */
export interface Image {
  readonly id: string;
  /** `diskimages[].name` of its build; unknown for a file that was added by hand. */
  readonly name?: string;
  /** End of its build, or the newest modification time of its files. */
  readonly builtAt: Date;
  /** Duration of its build in seconds; unknown for a file that was added by hand. */
  readonly buildTime?: number;
  /** Files of the image, at least one, in the order of {@link FORMAT_NAMES}. */
  readonly files: readonly ImageFile[];
  /** Providers that already have it without an upload. Absent if there are none. */
  readonly snapshots?: readonly Snapshot[];
}

/** A document that proves the origin of an image, such as a signed statement of its builder. */
export interface AttestationDocument {
  /** File name of the document: `build.sigstore.json`. See `checkAttestationName`. */
  readonly name: string;
  /** Text of at most 1 MiB in UTF-8. */
  readonly text: string;
}

/** Parameters of an upload. */
export interface UploadRequest {
  /**
   * Identifies the upload. A retry has the same id, and another upload of the same image has another one. The provider
   * stores it with the image.
   */
  readonly uploadId: string;
  readonly imageId: string;
  /** Name under `providers[].images`, from the `image-upload` job. */
  readonly imageName: string;
  /** End of its build; the provider stores it with the image. Default: unknown. */
  readonly builtAt?: Date;
  /**
   * Name of the image in the provider (`template-hostname`), if it can be chosen there. Default: the provider's choice.
   */
  readonly externalName?: string;
  /** File to upload, in one of the provider's {@link ImageProvider.formats}. */
  readonly file: ImageFile;
  /** Properties to store with the image (`meta` of `providers[].images`). */
  readonly metadata?: Readonly<Record<string, string>>;
  /**
   * Documents to store with the image, for a provider that has {@link ImageProvider.getAttestations}; others ignore
   * them. Default: none.
   */
  readonly attestations?: readonly AttestationDocument[];
  /**
   * True if other processes may run the same upload concurrently. Their partial images are then kept, and the first
   * complete image is the result of all, even if its file had other bytes. Default false: a partial image of this
   * upload comes from an earlier attempt and is removed.
   */
  readonly shared?: boolean;
}

/** Name and properties for an image that the provider already has. */
export type ClaimRequest = Omit<UploadRequest, 'file' | 'shared' | 'attestations'>;

/** Result of an upload. */
export interface UploadResult {
  /** The provider's id of the image, which WORK_COMPLETE returns as `external-id`. */
  readonly externalId: string;
  /**
   * Digests of the image that the provider computed or stored, in hexadecimal, by their names in in-toto: `md5`,
   * `sha256`, `sha512`. Absent if it reports none.
   */
  readonly reported?: Readonly<Record<string, string>>;
  /** True if the provider stores other bytes than it was sent, because it has converted them. Default false. */
  readonly isConverted?: boolean;
}

/** An image in a provider's list. */
export interface ProviderImage {
  readonly externalId: string;
  /** Id of its upload; unknown for uploads of an earlier release. */
  readonly uploadId?: string;
  readonly imageId: string;
  readonly imageName: string;
  readonly format: ImageFormat;
  readonly size: number;
  /** Digests of its bytes; unknown for images of an earlier release or of another program. */
  readonly checksums?: Checksums;
  /** Digests that the provider itself computed, as {@link UploadResult.reported}. Absent if it reports none. */
  readonly reported?: Readonly<Record<string, string>>;
  readonly uploadedAt: Date;
}

/** Any image in a provider, for comparison with a filter. */
export interface ImageCandidate {
  readonly externalId: string;
  /** Name in the provider, which may be ambiguous. */
  readonly name: string;
  /** Name under `providers[].images`; known for images that this software uploaded. */
  readonly imageName?: string;
  /** Image-id, known for images that nodepool-builder uploaded. */
  readonly imageId?: string;
  /** Status in the provider's spelling. */
  readonly status: string;
  /** True if the image can be booted: it is complete, and neither deactivated nor hidden. */
  readonly isUsable: boolean;
  /** True if the image belongs to the owner of the credentials in use. */
  readonly isOwn: boolean;
  /** The provider's id of its owner, if images of other owners are listed. */
  readonly owner?: string;
  readonly architecture?: string;
  readonly visibility?: string;
  readonly tags: readonly string[];
  readonly properties: Readonly<Record<string, string>>;
  /** Creation time in the provider. A copy has its own. */
  readonly createdAt: Date;
  /** End of its build, which its upload stored. */
  readonly builtAt?: Date;
}

/** Options of {@link ImageProvider.findImages}. */
export interface CandidateOptions extends OperationOptions {
  /** Ids of existing images, which are queried one by one if the provider's list does not contain them yet. */
  readonly known?: readonly string[];
  /** True to include images with a matching name that fail another condition. Default false. */
  readonly withRefused?: boolean;
}

/** Image of an upload, as named in its job. */
export type ImageKey = Pick<UploadRequest, 'imageId' | 'imageName'>;

/** Options of {@link ImageProvider.discard}. */
export interface DiscardOptions extends OperationOptions {
  /** Image of the upload. With it, a provider that finds images by their names need not search all of them. */
  readonly image?: ImageKey;
}

/** Partial image or data of an interrupted upload in a provider. */
export interface PartialUpload {
  /** Id of its upload. */
  readonly uploadId: string;
  /** Description for people: `image 5b1e… (saving)`. */
  readonly subject: string;
  /** Time of its last change. */
  readonly changedAt: Date;
  /** Removes it, unless it has changed since it was listed. Returns whether it was removed. */
  remove(options?: OperationOptions): Promise<boolean>;
}

/**
 * The narrow interface to a cloud, or to anything else that stores images. Every implementation passes
 * `imageProviderContract` of the `/testing` entry.
 */
export interface ImageProvider {
  /** `providers[].name`. */
  readonly name: string;
  /** Accepted formats, the preferred one first. */
  readonly formats: readonly ImageFormat[];
  /**
   * Uploads a file. A second call for the same upload results in one image, never two, because a job server assigns a
   * job again after a builder died.
   */
  upload(request: UploadRequest, options?: OperationOptions): Promise<UploadResult>;
  /**
   * Turns a {@link Snapshot} into the image of an upload by setting its name and properties. The call is idempotent.
   * Absent if there are no snapshots.
   *
   * @returns undefined if the snapshot does not exist or belongs to another upload, so that a file must be uploaded
   */
  claim?(
    externalId: string,
    request: ClaimRequest,
    options?: OperationOptions,
  ): Promise<UploadResult | undefined>;
  /** Removes the complete or partial image of an upload that is no longer needed. A missing image is not an error. */
  discard(uploadId: string, options?: DiscardOptions): Promise<void>;
  /** Removes an image. A missing image is not an error. */
  delete(externalId: string, options?: OperationOptions): Promise<void>;
  /** Lists the complete images that this software uploaded. */
  list(options?: OperationOptions): Promise<readonly ProviderImage[]>;
  /**
   * Lists at least all images that match a filter. The provider filters as far as its API can. `latestImage` filters
   * again and chooses. Nothing is cached between calls.
   */
  findImages(filter: ImageFilter, options?: CandidateOptions): Promise<readonly ImageCandidate[]>;
  /**
   * Downloads an image to a file, which appears once its checksum was verified. Absent if images are not files.
   *
   * @throws ImageError `image-not-found`
   */
  download?(externalId: string, path: string, options?: OperationOptions): Promise<void>;
  /** Returns the path of an image on this host. Absent if images are not local files. */
  imagePath?(externalId: string): string;
  /**
   * Returns the documents that are stored with an image, from its upload or added later. An image without documents has
   * an empty list. Absent if no documents are stored with images.
   *
   * @throws ImageError `image-not-found`
   */
  getAttestations?(externalId: string, options?: OperationOptions): Promise<readonly AttestationDocument[]>;
  /**
   * Adds documents to an image, or replaces those with the same names, because a statement about an upload can only be
   * made after it. The call is idempotent. Present if {@link getAttestations} is.
   *
   * @throws ImageError `image-not-found`
   */
  addAttestations?(
    externalId: string,
    documents: readonly AttestationDocument[],
    options?: OperationOptions,
  ): Promise<void>;
  /** Lists partial images of interrupted uploads. Absent if uploads leave none. */
  listPartialUploads?(options?: OperationOptions): Promise<readonly PartialUpload[]>;
  /** Checks what uploads need: credentials, services, quota, free space. It changes nothing, and retries nothing. */
  diagnose?(options?: CheckOptions): AsyncIterable<CheckResult>;
}
