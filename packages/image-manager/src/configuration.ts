/** The parts of `nodepool.yaml` that the manager needs. Times are in seconds. */
export interface ManagerConfiguration {
  readonly diskimages: readonly ManagedDiskImage[];
  readonly providers: readonly ManagedProvider[];
  readonly timing: Timing;
}

/** One entry of `diskimages`, or of `zuul-images`. */
export interface ManagedDiskImage {
  readonly name: string;
  /** Digest of the settings that define the image's content. A rebuild is due when it changes. */
  readonly digest: string;
  /** True if builds and uploads of the image are paused. */
  readonly pause: boolean;
  /** Age of the newest build, counted from its request, at which the next build is due. */
  readonly rebuildAge?: number;
  /** Valid cron expression for the times at which builds are due, in the local time zone. */
  readonly rebuildCron?: string;
  /**
   * True if Zuul builds the image. Builders then import each build on their own, and the manager adopts it. The manager
   * requests an import only on request, or when the newest image is absent. Default false.
   */
  readonly isImported?: boolean;
  /** Number of ready images to keep, on disk and in each provider. At least 1. */
  readonly keep: number;
  /** Timeout of a running build. */
  readonly buildTimeout: number;
}

/** One entry of `providers`. */
export interface ManagedProvider {
  readonly name: string;
  /** True if uploads to the provider are paused; images in it stay. */
  readonly pause: boolean;
  /** Timeout of a running upload. */
  readonly uploadTimeout: number;
  readonly images: readonly ManagedProviderImage[];
}

/** One entry of `providers[].images` that names a disk image. */
export interface ManagedProviderImage {
  readonly name: string;
  readonly diskimage: string;
  /** True if uploads of the image are paused; uploaded images stay. */
  readonly pause: boolean;
}

/** Intervals and limits, in seconds. */
export interface Timing {
  /** Pause after a first failure; each further failure doubles it. Default 60. */
  readonly retryDelay: number;
  /** Maximum pause after a failure. Default 3,600. */
  readonly maxRetryDelay: number;
  /** Time between two scans for orphans. Default 600. */
  readonly orphanScanInterval: number;
  /** Time after which an image that no builder offers, but a provider needs, is built again. Default 1,800. */
  readonly absenceTimeout: number;
}
