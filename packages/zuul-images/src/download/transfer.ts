import type { Logger, OperationOptions } from '@nodepool-builder/image-builder';
import type { RetryLimits } from '@nodepool-builder/image-builder/plugin';
import type { ArtifactAccess, HttpSource } from './http-source.ts';
import type { TransientError } from './retries.ts';
import type { Spool } from './spool.ts';
import type { RangedObject, WholeObject } from './stored-object.ts';

/** Digests that a job returned, in lower-case hexadecimal digits. Absent ones are not checked. */
export interface ExpectedDigests {
  /** SHA-256 of the unpacked file. */
  readonly sha256?: string;
  /** MD5 of the unpacked file. */
  readonly md5?: string;
  /** CRC-32 of the object as it is stored, compressed or not. */
  readonly crc32?: string;
}

/** An artifact and its destination. */
export interface ArtifactRequest extends ExpectedDigests {
  /**
   * Absolute URL: http, https, or `s3://bucket/key`. The name of a compressed object ends in `.zst`, `.xz` or `.gz`.
   */
  readonly url: string;
  readonly access: ArtifactAccess;
  /**
   * Directory of this download only, which is created. After an interruption, a later call for the same artifact
   * resumes with its content. The signature in the URL may differ.
   */
  readonly directory: string;
  /** Maximum size of the unpacked file in bytes. */
  readonly maxSize: number;
  /** Bytes to leave free on the file system. */
  readonly leaveFree: number;
}

/** Settings of a download. Progress is in percent; there is none if the server sends no size. */
export interface DownloadOptions extends OperationOptions {
  readonly logger?: Logger;
  /** Waits until this many bytes fit next to a path. Default: a lack of space is an error. */
  readonly reserve?: (path: string, bytes: number) => Promise<void>;
  /** Number of ranges fetched concurrently. Default 4. */
  readonly connections?: number;
  /** Milliseconds without data after which a connection counts as lost. Default: a minute. */
  readonly stall?: number;
  /** Retry limits. Default: eight attempts, with delays from one second to two minutes. */
  readonly retryPolicy?: RetryLimits;
}

/** A download from one version of an object. */
export interface Transfer {
  readonly source: HttpSource;
  readonly object: RangedObject | WholeObject;
  readonly spool: Spool;
  readonly request: ArtifactRequest;
  readonly options: DownloadOptions;
  /**
   * End of a body before its announced length. The length may be wrong, so the digest decides whether it is complete.
   */
  interruption?: TransientError;
}
