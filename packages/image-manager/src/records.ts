import type { SettingsOf } from '@nodepool-builder/image-builder';
import { objectOf, TEXT } from '@nodepool-builder/image-builder/internal';

/** Milliseconds since 1970. */
const TIME = { type: 'integer' } as const;
const FLAG = { type: 'boolean' } as const;

/** Properties of a build or an upload that has ended. */
const ENDED = {
  /** Time at which it became ready or failed. */
  endedAt: TIME,
  /** Error if it failed. */
  error: TEXT,
  /** User who cancelled it, as `root@host`. It counts as failed. */
  cancelledBy: TEXT,
} as const;

/** Schema of {@link Build}. Exports follow from it: every integer is a time. */
export const BUILD = objectOf(
  {
    /** Image-id, made by `imageIdOf`; for an adopted build of Zuul, by `importedImageId`. */
    id: TEXT,
    /** `diskimages[].name`. */
    diskimage: TEXT,
    /**
     * `building` until a builder has replied, then `ready` or `failed`; `deleting` until no builder offers the image
     * any longer, then `deleted`.
     */
    state: { enum: ['building', 'ready', 'failed', 'deleting', 'deleted'] },
    /** Digest of the `diskimages` entry at the time of the request. A rebuild is due when the digest changes. */
    configuration: TEXT,
    /** Reason of the request. */
    reason: TEXT,
    /** Time of the request; of an adopted build, the time at which it ended in Zuul. */
    requestedAt: TIME,
    /** Rolled back: never uploaded again, and deleted from each provider that has an older image. */
    withdrawn: FLAG,
  },
  {
    /**
     * Format and sha256 of a file of the build. After a network partition, two builders may have built different images
     * under one image-id, and the copy that differs is deleted. Absent if no builder has reported it.
     */
    checksum: TEXT,
    ...ENDED,
  },
);

/** Schema of {@link Upload}. */
export const UPLOAD = objectOf(
  {
    /** Made by `uploadIdOf`: the job's unique key, which the provider stores with the image. */
    id: TEXT,
    /** The {@link Build}'s id. */
    imageId: TEXT,
    diskimage: TEXT,
    /** `providers[].name`. */
    provider: TEXT,
    /** `providers[].images[].name`. */
    imageName: TEXT,
    /**
     * State of the image in a provider, like a build's state. It is `missing` while the provider no longer lists an
     * image that was ready.
     */
    state: { enum: ['uploading', 'ready', 'missing', 'failed', 'deleting', 'deleted'] },
    reason: TEXT,
    requestedAt: TIME,
    /** The provider may have parts of the failed upload, which are discarded by the upload's id. */
    leftovers: FLAG,
    /** The provider has listed the image. From then on, its absence from a list means that it is missing. */
    seen: FLAG,
  },
  {
    /** The provider's id of the image, once it is ready. */
    externalId: TEXT,
    ...ENDED,
  },
);

/** Schema of {@link Pause}. */
export const PAUSE = {
  ...objectOf({
    /** `diskimages[].name`. */
    id: TEXT,
    /** False for a disk image that the configuration pauses, but that is built anyway. */
    isPaused: FLAG,
    /** User who paused or unpaused it, as `root@host`. */
    by: TEXT,
    since: TIME,
  }),
  additionalProperties: false,
} as const;

/** A build of a disk image, and its image in the builder's `images-dir`. */
export type Build = SettingsOf<typeof BUILD>;

/** An upload of a build to a provider, and its image there. */
export type Upload = SettingsOf<typeof UPLOAD>;

/** A request to pause or unpause a disk image, which overrides `pause` in the configuration. */
export type Pause = SettingsOf<typeof PAUSE>;

/** All records of a manager. */
export interface ManagerState {
  /** Builds by id. */
  readonly builds: ReadonlyMap<string, Build>;
  /** Uploads by id. */
  readonly uploads: ReadonlyMap<string, Upload>;
  /** Pauses by the name of the disk image. */
  readonly pauses: ReadonlyMap<string, Pause>;
}

/**
 * Describes who has paused a disk image: `paused by root@host since 2026-03-10T12:00:00.000Z`. A record overrides the
 * configuration. Returns undefined if the disk image is not paused.
 */
export function whyPaused(
  { pauses }: Pick<ManagerState, 'pauses'>,
  { name, pause }: { readonly name: string; readonly pause: boolean },
): string | undefined {
  const record = pauses.get(name);
  if (record === undefined) return pause ? 'paused by the configuration' : undefined;
  if (!record.isPaused) return undefined;
  return `paused by ${record.by} since ${new Date(record.since).toISOString()}`;
}

/** Schemas of the requests to the manager, by kind. */
export const REQUESTS = {
  build: objectOf({ diskimage: TEXT }),
  'delete-build': objectOf({ imageId: TEXT }),
  'delete-upload': objectOf({ uploadId: TEXT }),
  /** Rejected if the newest image is no longer `imageId`. */
  rollback: objectOf({ diskimage: TEXT }, { imageId: TEXT }),
  pause: objectOf({ diskimage: TEXT, by: TEXT }),
  unpause: objectOf({ diskimage: TEXT, by: TEXT }),
  /** Cancels a build or an upload by its id, or the requested or running build of a disk image by its name. */
  cancel: objectOf({ id: TEXT, by: TEXT }),
} as const;

/** A request to the manager, made by a command. */
export type Request = {
  [Kind in keyof typeof REQUESTS]: { readonly kind: Kind } & SettingsOf<(typeof REQUESTS)[Kind]>;
}[keyof typeof REQUESTS];

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
