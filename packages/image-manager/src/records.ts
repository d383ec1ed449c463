/**
 * What becomes of a build: `building` until a builder has answered, then `ready` or `failed`; `deleting` until no
 * builder offers the image any more, then `deleted`.
 */
export type BuildState = 'building' | 'ready' | 'failed' | 'deleting' | 'deleted';

/** What becomes of an upload: the same, in a provider. */
export type UploadState = 'uploading' | 'ready' | 'failed' | 'deleting' | 'deleted';

/** One build of a disk image, and the image in `images-dir` of the builder that made it. All times are milliseconds since 1970. */
export interface Build {
  /** The image-id, made by {@link imageIdOf}; of a build of Zuul that a builder took on its own, by importedImageId. */
  readonly id: string;
  /** `diskimages[].name`. */
  readonly diskimage: string;
  readonly state: BuildState;
  /** Digest of the `diskimages` entry that it was asked for with: a rebuild is due when that changed. */
  readonly configuration: string;
  /** Why it was asked for, in words. */
  readonly reason: string;
  /** Of a build of Zuul that was adopted: when it ended there. */
  readonly requestedAt: number;
  /** When it became ready or failed. */
  readonly endedAt?: number;
  /** Rolled back: it is uploaded no more, and what was uploaded goes once the one before stands in for it. */
  readonly withdrawn: boolean;
  /**
   * Checksum of a build: the format of a file and its sha256. After a partition two builders may have built under one
   * image-id; the copy that differs is deleted. Absent if no builder has reported it.
   */
  readonly checksum?: string;
  /** Why it failed. */
  readonly error?: string;
}

/** One upload of a build to a provider, and the image there. */
export interface Upload {
  /** Made by {@link uploadIdOf}: the job's unique key, which the provider stores with the image. */
  readonly id: string;
  /** The {@link Build.id}. */
  readonly imageId: string;
  readonly diskimage: string;
  /** `providers[].name`. */
  readonly provider: string;
  /** `providers[].images[].name`. */
  readonly imageName: string;
  readonly state: UploadState;
  /** The provider's own id, from when it is ready. */
  readonly externalId?: string;
  readonly reason: string;
  readonly requestedAt: number;
  /** When it became ready or failed. */
  readonly endedAt?: number;
  /** The provider may hold what a failed upload left: it is discarded by its id. */
  readonly leftovers: boolean;
  /** The provider has listed it once: from then on its absence means that somebody removed it. */
  readonly seen: boolean;
  /** Why it failed. */
  readonly error?: string;
}

/** Everything that a manager knows. */
export interface ManagerState {
  /** By id. */
  readonly builds: ReadonlyMap<string, Build>;
  /** By id. */
  readonly uploads: ReadonlyMap<string, Upload>;
}

/** What a person asks of a manager, by a command. */
export type Request =
  | { readonly kind: 'build'; readonly diskimage: string }
  | { readonly kind: 'delete-build'; readonly imageId: string }
  | { readonly kind: 'delete-upload'; readonly uploadId: string }
  | { readonly kind: 'rollback'; readonly diskimage: string };

/** A {@link Request} that waits in the store; a lower number was made earlier. */
export interface PendingRequest {
  readonly number: number;
  readonly request: Request;
}
