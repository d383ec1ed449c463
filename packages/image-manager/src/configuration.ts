/** What a manager has to know of `nodepool.yaml`. Times are in seconds. */
export interface ManagerConfiguration {
  readonly diskimages: readonly ManagedDiskImage[];
  readonly providers: readonly ManagedProvider[];
  readonly timing: Timing;
}

/** One entry of `diskimages`, or of `zuul-images`. */
export interface ManagedDiskImage {
  readonly name: string;
  /** Digest of what the entry says of the build: a rebuild is due when it changes. Secrets are only in it as a digest. */
  readonly digest: string;
  /** Neither built nor uploaded for the time being. */
  readonly pause: boolean;
  /** Age of the newest build, since it was asked for, at which the next is due. Default of the configuration: 86,400, unless there is a cron expression. */
  readonly rebuildAge?: number;
  /** When builds are due, as a cron expression, in the local time zone. */
  readonly rebuildCron?: string;
  /**
   * Jobs of Zuul build it, and builders take each build on their own: what they offer is adopted. The manager has one
   * taken only on request, or when the newest is absent. Default false.
   */
  readonly followsZuul?: boolean;
  /** How many ready ones are kept, on disk and in each provider. At least 1. */
  readonly keep: number;
  /** How long a build may take once it runs. */
  readonly buildTimeout: number;
}

/** One entry of `providers`. */
export interface ManagedProvider {
  readonly name: string;
  /** Nothing is uploaded to it for the time being; what is there stays. */
  readonly pause: boolean;
  /** How long an upload may take once it runs. */
  readonly uploadTimeout: number;
  readonly images: readonly ManagedProviderImage[];
}

/** One entry of `providers[].images` that names a disk image. */
export interface ManagedProviderImage {
  readonly name: string;
  readonly diskimage: string;
  /** It is not uploaded for the time being; what is there stays. */
  readonly pause: boolean;
}

/** When things are tried again. */
export interface Timing {
  /** Between a first failure and the next try; it doubles with each further failure. Default 60. */
  readonly retryDelay: number;
  /** The longest such pause. Default 3,600. */
  readonly longestRetryDelay: number;
  /** Between two looks for leaks: what is seen at both goes. Default 600. */
  readonly leakInterval: number;
  /** How long the newest image may be offered by no builder, while a provider needs it, until it is built anew. Default 1,800. */
  readonly absenceLimit: number;
}
