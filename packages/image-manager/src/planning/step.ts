/** What is to be done next, and why. */
export type Step =
  | { readonly act: 'build'; readonly diskimage: string; readonly reason: string }
  /** A build that nobody follows any more: its manager died, or its job was lost. */
  | { readonly act: 'resume-build'; readonly imageId: string; readonly reason: string }
  | {
      readonly act: 'upload';
      readonly imageId: string;
      readonly diskimage: string;
      readonly provider: string;
      readonly imageName: string;
      readonly reason: string;
    }
  | { readonly act: 'resume-upload'; readonly uploadId: string; readonly reason: string }
  /** Begins a deletion, or goes on with one. */
  | { readonly act: 'delete-upload'; readonly uploadId: string; readonly reason: string }
  | { readonly act: 'delete-build'; readonly imageId: string; readonly reason: string }
  /** Removes what a failed upload may have left. */
  | { readonly act: 'discard'; readonly uploadId: string; readonly reason: string }
  /** Forgets records of what is gone. */
  | {
      readonly act: 'prune';
      readonly builds: readonly string[];
      readonly uploads: readonly string[];
      readonly reason: string;
    };

/** What would be done, and what it waits for. */
export interface Wait {
  /** What is held up, as `diskimage debian`, `provider cloud: image debian`. */
  readonly subject: string;
  readonly reason: string;
  /** When it goes on by itself, in milliseconds since 1970; absent if something has to happen first. */
  readonly until?: number;
}

/** A build that becomes due with time. */
export interface LaterBuild {
  readonly diskimage: string;
  readonly reason: string;
  /** Milliseconds since 1970. */
  readonly at: number;
}

/** What a planning pass finds. */
export interface Plan {
  readonly steps: readonly Step[];
  readonly waits: readonly Wait[];
  readonly laterBuilds: readonly LaterBuild[];
  /**
   * When to plan again though nothing has happened: the earliest `until`, or when a build is due by age, cron
   * expression or absence. Milliseconds since 1970; absent if only events matter.
   */
  readonly nextAt?: number;
}

/** What a plan depends on besides configuration and state. */
export interface World {
  /** Milliseconds since 1970. */
  readonly now: number;
  /** What builders offer at this moment; only functions with a worker. */
  readonly offered: OfferedFunctions;
  /** Ids of builds and uploads that somebody is at work on in this process: nothing is planned for them. */
  readonly underWay: ReadonlySet<string>;
  /** Since when the newest image of each disk image has been offered by no builder, by image-id. */
  readonly absentSince: ReadonlyMap<string, number>;
  /** When an act that failed without leaving a record (a deletion, a discarding) may be tried again, by id. */
  readonly retryAt: ReadonlyMap<string, number>;
  /** Disk images that a person asked to be built: due at once, whatever their age, pause and back-off. */
  readonly demanded: ReadonlySet<string>;
}

/** Subjects of the functions that builders offer to the job servers. */
export interface OfferedFunctions {
  /** Disk images, of `image-build:<name>`. */
  readonly builds: ReadonlySet<string>;
  /** Image-ids, of `image-upload:<image-id>`. */
  readonly uploads: ReadonlySet<string>;
  /** Image-ids, of `image-delete:<image-id>`. */
  readonly deletes: ReadonlySet<string>;
}
