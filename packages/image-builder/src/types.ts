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

/** Progress of a long operation. `done` and `total` have the same unit: bytes or percent. */
export interface Progress {
  readonly done: number;
  readonly total: number;
  /** The thing that the operation waits for, such as disk space. Absent while it works. */
  readonly waiting?: string;
  /** The part of the operation that runs, such as `install.d`; absent if it has no parts. */
  readonly phase?: string;
}

/** Options of every long call. */
export interface OperationOptions {
  /** Aborts the call, which is then rejected with the signal's reason as the cause. */
  readonly signal?: AbortSignal;
  /** Called during the work, at most a few times a second. */
  readonly onProgress?: (progress: Progress) => void;
}

/** Options of the method `diagnose` of modules and providers. */
export interface CheckOptions extends OperationOptions {
  /** Bytes of the largest image of this host; undefined if it has none. */
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
  /** Length in bytes, holes included. */
  readonly size: number;
  /** Known for files that a builder of this project made, unless they changed since. */
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
  /** `diskimages[].name` of its build; unknown for a file that was put there by hand. */
  readonly name?: string;
  /** End of its build, or the newest modification time of its files. */
  readonly builtAt: Date;
  /** Duration of its build in seconds; unknown for a file that was put there by hand. */
  readonly buildTime?: number;
  /** At least one, in the order of {@link FORMAT_NAMES}. */
  readonly files: readonly ImageFile[];
  /** Providers that already have it without an upload. Absent if there are none. */
  readonly snapshots?: readonly Snapshot[];
}

/** A document that proves where an image comes from, such as a signed statement of its builder. */
export interface AttestationDocument {
  /** Name of its file: `build.sigstore.json`. See `checkAttestationName`. */
  readonly name: string;
  /** At most 1 MiB in UTF-8. */
  readonly text: string;
}

/** Parameters of an upload. */
export interface UploadRequest {
  /**
   * Identifies the upload: a retry has the same id, a further upload of the same image another one. The provider stores
   * it with the image.
   */
  readonly uploadId: string;
  readonly imageId: string;
  /** Name under `providers[].images`, from the `image-upload` job. */
  readonly imageName: string;
  /** End of its build; the provider stores it with the image. Default: unknown. */
  readonly builtAt?: Date;
  /** Name of the image in the provider (`template-hostname`), where it can be chosen. Default: the provider's choice. */
  readonly externalName?: string;
  /** File to upload, in one of the provider's {@link ImageProvider.formats}. */
  readonly file: ImageFile;
  /** Properties to store with the image (`meta` of `providers[].images`). */
  readonly metadata?: Readonly<Record<string, string>>;
  /**
   * Documents to keep with the image, by a provider that has {@link ImageProvider.getAttestations}; others ignore them.
   * Default: none.
   */
  readonly attestations?: readonly AttestationDocument[];
  /**
   * Whether other processes may run the same upload concurrently: then their partial images are kept, and the first
   * complete image is the result of all, even if its file had other bytes. Default false: a partial image of this upload
   * comes from an earlier attempt and is removed.
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
   * Digests of the image that the provider computed or stored, in hexadecimal, by the names of in-toto: `md5`, `sha256`,
   * `sha512`. Absent where it reports none.
   */
  readonly reported?: Readonly<Record<string, string>>;
  /** Whether the provider stores other bytes than it was sent, because it has converted them. Default false. */
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
  /** Digests that the provider itself computed, as {@link UploadResult.reported}. Absent where it reports none. */
  readonly reported?: Readonly<Record<string, string>>;
  readonly uploadedAt: Date;
}

/** Any image in a provider, to be compared with a filter. */
export interface ImageCandidate {
  readonly externalId: string;
  /** Name in the provider, which may be ambiguous. */
  readonly name: string;
  /** Name under `providers[].images`; known for images that this software uploaded. */
  readonly imageName?: string;
  /** Known for images that this software uploaded. */
  readonly imageId?: string;
  /** In the provider's spelling. */
  readonly status: string;
  /** Whether it can be booted: complete, not deactivated, not hidden. */
  readonly isUsable: boolean;
  /** Whether it belongs to the owner of the credentials in use. */
  readonly isOwn: boolean;
  /** The provider's id of its owner, where images of other owners are listed. */
  readonly owner?: string;
  readonly architecture?: string;
  readonly visibility?: string;
  readonly tags: readonly string[];
  readonly properties: Readonly<Record<string, string>>;
  /** Time of creation in the provider; a copy has its own. */
  readonly createdAt: Date;
  /** End of its build, which its upload stored. */
  readonly builtAt?: Date;
}

/** Options of {@link ImageProvider.findImages}. */
export interface CandidateOptions extends OperationOptions {
  /** Ids of existing images, which are queried one by one if the provider's list does not contain them yet. */
  readonly known?: readonly string[];
  /** Whether to include images with a matching name that fail another condition. Default false. */
  readonly withRefused?: boolean;
}

/** Image of an upload, as its job named it. */
export type ImageKey = Pick<UploadRequest, 'imageId' | 'imageName'>;

/** Options of {@link ImageProvider.discard}. */
export interface DiscardOptions extends OperationOptions {
  /** Image of the upload. A provider that finds images by their names need not search all of them then. */
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
   * Uploads a file. A second call for the same upload (a job server assigns a job again after a builder died) results in
   * one image, never two.
   */
  upload(request: UploadRequest, options?: OperationOptions): Promise<UploadResult>;
  /**
   * Turns a {@link Snapshot} into the image of an upload by setting its name and properties. The call is idempotent.
   * Absent where there are no snapshots.
   *
   * @returns undefined if the snapshot does not exist or belongs to another upload: then a file must be uploaded
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
   * Lists at least all images that pass a filter; the provider filters as far as its API can. `latestImage` filters again
   * and chooses. Nothing is cached between calls.
   */
  findImages(filter: ImageFilter, options?: CandidateOptions): Promise<readonly ImageCandidate[]>;
  /**
   * Downloads an image to a file, which appears once its checksum was compared. Absent where images are not files.
   *
   * @throws ImageError `image-not-found`
   */
  download?(externalId: string, path: string, options?: OperationOptions): Promise<void>;
  /** Path of an image on this host. Absent where images are not local files. */
  imagePath?(externalId: string): string;
  /**
   * Returns the documents that are kept with an image: those of its upload, and those that were added since. An image
   * without documents has an empty list. Absent where no documents are kept with images.
   *
   * @throws ImageError `image-not-found`
   */
  getAttestations?(externalId: string, options?: OperationOptions): Promise<readonly AttestationDocument[]>;
  /**
   * Adds documents to an image, or replaces those with the same names: a statement about an upload can only be made after
   * it. The call is idempotent. Present where {@link getAttestations} is.
   *
   * @throws ImageError `image-not-found`
   */
  addAttestations?(
    externalId: string,
    documents: readonly AttestationDocument[],
    options?: OperationOptions,
  ): Promise<void>;
  /** Lists partial images of interrupted uploads. Absent where uploads leave none. */
  listPartialUploads?(options?: OperationOptions): Promise<readonly PartialUpload[]>;
  /** Checks what uploads need: credentials, services, quota, room. It changes nothing, and retries nothing. */
  diagnose?(options?: CheckOptions): AsyncIterable<CheckResult>;
}
