/**
 * State of a build: `building` until a builder has answered, then `ready` or `failed`; `deleting` until no builder
 * offers the image any longer, then `deleted`.
 */
export type BuildState = 'building' | 'ready' | 'failed' | 'deleting' | 'deleted';

/** State of an upload, with the same meanings for an image in a provider. */
export type UploadState = 'uploading' | 'ready' | 'failed' | 'deleting' | 'deleted';

/** A build of a disk image, and its image in the builder's `images-dir`. Times are milliseconds since 1970. */
export interface Build {
  /** Image-id, made by {@link imageIdOf}; for an adopted build of Zuul, by `importedImageId`. */
  readonly id: string;
  /** `diskimages[].name`. */
  readonly diskimage: string;
  readonly state: BuildState;
  /** Digest of the `diskimages` entry at the time of the request. A rebuild is due when the digest changes. */
  readonly configuration: string;
  /** Why it was requested, in words. */
  readonly reason: string;
  /** For an adopted build of Zuul: the time at which it ended there. */
  readonly requestedAt: number;
  /** When it became ready or failed. */
  readonly endedAt?: number;
  /** Rolled back: never uploaded again, and deleted from each provider that has an older image. */
  readonly withdrawn: boolean;
  /**
   * Format and sha256 of a file of the build. After a network partition, two builders may have built different images
   * under one image-id; the copy that differs is deleted. Absent if no builder has reported it.
   */
  readonly checksum?: string;
  /** Why it failed. */
  readonly error?: string;
}

/** An upload of a build to a provider, and its image there. */
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
  /** The provider's id of the image, once it is ready. */
  readonly externalId?: string;
  readonly reason: string;
  readonly requestedAt: number;
  /** When it became ready or failed. */
  readonly endedAt?: number;
  /** The provider may hold parts of the failed upload, which are discarded by the upload's id. */
  readonly leftovers: boolean;
  /** The provider has listed the image. From then on, its absence means that somebody deleted it. */
  readonly seen: boolean;
  /** Why it failed. */
  readonly error?: string;
}

/** All records of a manager. */
export interface ManagerState {
  /** By id. */
  readonly builds: ReadonlyMap<string, Build>;
  /** By id. */
  readonly uploads: ReadonlyMap<string, Upload>;
}

/** A request to the manager, made by a command. */
export type Request =
  | { readonly kind: 'build'; readonly diskimage: string }
  | { readonly kind: 'delete-build'; readonly imageId: string }
  | { readonly kind: 'delete-upload'; readonly uploadId: string }
  | { readonly kind: 'rollback'; readonly diskimage: string };

/** A request in the store that this release cannot handle. */
export interface InvalidRequest {
  readonly kind: 'invalid';
  readonly reason: string;
}

/** A {@link Request} that waits in the store. Numbers grow with time. */
export interface PendingRequest {
  readonly number: number;
  readonly request: Request | InvalidRequest;
}
