/** Something that a build returned (`zuul_return`). */
export interface ZuulArtifact {
  readonly name: string;
  /** Absolute: http, https or s3. Its query may be a signature: never log it. */
  readonly url: string;
  /** Whatever the job said; empty if it said nothing. */
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** A build as both generations of the API tell of it. */
export interface ZuulBuild {
  readonly uuid: string;
  /** Zuul's row number: in the order of the starts. Zero where the server is too old to tell. */
  readonly id: number;
  readonly jobName: string;
  /** `SUCCESS`, `FAILURE` and so on; absent while it runs. */
  readonly result?: string;
  /** False for a try that was followed by another. */
  readonly final: boolean;
  /** Milliseconds since the epoch. */
  readonly startTime?: number;
  /** Milliseconds since the epoch. */
  readonly endTime?: number;
  /** The short name: `opendev/system-config`. */
  readonly project: string;
  /** Absent for what is no branch, a tag for example. */
  readonly branch?: string;
  readonly pipeline: string;
  readonly artifacts: readonly ZuulArtifact[];
  /** Artifacts left out, each with the reason. */
  readonly unusableArtifacts: readonly string[];
}
