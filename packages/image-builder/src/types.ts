import type { ImageFormat } from './formats.ts';
import type { ImageFilter } from './image-filter/image-filter.ts';
import type { Leftover } from './leftover.ts';

/** Where log lines go; a winston logger is one. */
export interface Logger {
  debug(message: string, meta?: object): unknown;
  info(message: string, meta?: object): unknown;
  warn(message: string, meta?: object): unknown;
  error(message: string, meta?: object): unknown;
}

/** How far a long operation has come. `done` and `total` have the same unit: bytes, or 1/100 of the whole. */
export interface Progress {
  readonly done: number;
  readonly total: number;
}

/** What every long call takes. */
export interface OperationOptions {
  /** Ends the call early; it then rejects with the signal's reason as the cause. */
  readonly signal?: AbortSignal;
  /** Called as the work goes on, at most a few times a second. */
  readonly onProgress?: (progress: Progress) => void;
}

/** Hexadecimal digests of a file, as OpenStack's image properties have them. */
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
  /** Known for what a builder of ours made and nobody changed since. */
  readonly checksums?: Checksums;
}

/** An image that came into being in a provider when an instance there was captured. */
export interface Snapshot {
  /** `providers[].name`. */
  readonly provider: string;
  readonly externalId: string;
}

/** An image in the local directory: one id, one or more formats. */
export interface Image {
  readonly id: string;
  /** The `diskimages[].name` it was built for; unknown for a file that was put there by hand. */
  readonly name?: string;
  /** When its build ended, or the newest modification time of its files. */
  readonly builtAt: Date;
  /** At least one; in the order of {@link FORMAT_NAMES}. */
  readonly files: readonly ImageFile[];
  /** Where it lies already without an upload. Absent if nowhere. */
  readonly snapshots?: readonly Snapshot[];
}

/** What a provider is asked to take. */
export interface UploadRequest {
  /**
   * Which upload this is: the same id when one is asked for again because its first try broke off, another id for
   * another upload of the same image. The provider stores it with the image.
   */
  readonly uploadId: string;
  readonly imageId: string;
  /** The image's name under `providers[].images`, as the `image-upload` job names it. */
  readonly imageName: string;
  /** When its build ended; the provider stores it with the image. Default: unknown. */
  readonly builtAt?: Date;
  /** What the provider is to call the image (`template-hostname`), where it lets one choose. Default: as it likes. */
  readonly externalName?: string;
  /** The file to carry, in one of the provider's {@link ImageProvider.formats}. */
  readonly file: ImageFile;
  /** Properties to store with the image (`meta` of `providers[].images`). */
  readonly metadata?: Readonly<Record<string, string>>;
  /**
   * Whether other processes may be at the same upload: then nothing of theirs is removed, and the image that comes
   * first is the result of all, even if it was made of a file that differs in its bytes. Default false: what there is
   * of this upload was left by an earlier try, and is removed unless it is whole.
   */
  readonly shared?: boolean;
}

/** What an image is to be called and to carry that lies in the provider already. */
export type ClaimRequest = Omit<UploadRequest, 'file' | 'shared'>;

/** What a provider made of an upload. */
export interface UploadResult {
  /** The provider's own id of the image: what WORK_COMPLETE carries as `external-id`. */
  readonly externalId: string;
}

/** An image as a provider lists it. */
export interface ProviderImage {
  readonly externalId: string;
  /** Which upload brought it; unknown for what an earlier release brought. */
  readonly uploadId?: string;
  readonly imageId: string;
  readonly imageName: string;
  readonly format: ImageFormat;
  readonly size: number;
  /** Digests of its bytes; unknown for images of an earlier release or of another program. */
  readonly checksums?: Checksums;
  readonly uploadedAt: Date;
}

/** An image in a provider, whoever brought it, that a filter is held against. */
export interface ImageCandidate {
  readonly externalId: string;
  /** What the provider calls it; several may be called the same. */
  readonly name: string;
  /** The image's name under `providers[].images`; known of what this software uploaded. */
  readonly imageName?: string;
  /** Known for images that this software uploaded. */
  readonly imageId?: string;
  /** In the provider's own word. */
  readonly status: string;
  /** Whether it can be booted now: whole, not withdrawn, not hidden. */
  readonly isUsable: boolean;
  /** Whether it belongs to whom the provider's credentials stand for. */
  readonly isOwn: boolean;
  /** The provider's id of its owner, where there are others. */
  readonly owner?: string;
  readonly architecture?: string;
  readonly visibility?: string;
  readonly tags: readonly string[];
  readonly properties: Readonly<Record<string, string>>;
  /** When it came into being in the provider; a copy has a time of its own. */
  readonly createdAt: Date;
  /** When its build ended, as its upload stored it. */
  readonly builtAt?: Date;
}

/** How an {@link ImageProvider} is asked for candidates. */
export interface CandidateOptions extends OperationOptions {
  /** Ids of images that are there for sure: they are asked for one by one if the list has them not yet. */
  readonly known?: readonly string[];
  /** Whether those are to be among them that have a name that fits and do not pass for another reason. Default false. */
  readonly withRefused?: boolean;
}

/**
 * The narrow port to a cloud, or to anything else that takes images. Every implementation passes
 * `imageProviderContract` of the `/testing` entry.
 */
export interface ImageProvider {
  /** `providers[].name`. */
  readonly name: string;
  /** The formats it takes, the best first. */
  readonly formats: readonly ImageFormat[];
  /**
   * Carries one file. It may be called again for the same upload (a job server hands a job out again when a
   * builder died): the second call leaves one image, never two.
   */
  upload(request: UploadRequest, options?: OperationOptions): Promise<UploadResult>;
  /**
   * Makes a {@link Snapshot} the image of an upload, by its name and properties alone: nothing is carried. The same
   * upload may ask for it again. Absent where there are no snapshots.
   *
   * @returns undefined if it is not there, or is another upload's: then a file has to be carried
   */
  claim?(
    externalId: string,
    request: ClaimRequest,
    options?: OperationOptions,
  ): Promise<UploadResult | undefined>;
  /** Removes whatever an upload left, whole or half; nothing there is no error. For one that nobody waits for any more. */
  discard(uploadId: string, options?: OperationOptions): Promise<void>;
  /** Removes an image; one that is not there is no error. */
  delete(externalId: string, options?: OperationOptions): Promise<void>;
  /** The images that were uploaded by this software, whole ones only. */
  list(options?: OperationOptions): Promise<readonly ProviderImage[]>;
  /**
   * All images that pass a filter, and maybe others: the provider leaves out what its API can leave out. `latestImage`
   * looks at each again and chooses. Nothing is remembered from one call to the next.
   */
  candidates(filter: ImageFilter, options?: CandidateOptions): Promise<readonly ImageCandidate[]>;
  /** What uploads left here that did not come to their end. Absent where they leave nothing. */
  leftovers?(options?: OperationOptions): Promise<readonly Leftover[]>;
}
