import type { Checksums, Logger, OperationOptions } from '@nodepool-builder/image-builder';
import type { RetryLimits } from '@nodepool-builder/image-builder/module-kit';
import type { ExpectedArtifact } from './expected.ts';
import type { HeadersOfHosts } from './http-source.ts';

/** An artifact and its destination. */
export interface ArtifactRequest {
  /** Absolute: http, https, or `s3://bucket/key`. Its path ends in `.zst`, `.xz` or `.gz` if it is packed. */
  readonly url: string;
  /** Path of the unpacked file. It appears complete or not at all, and replaces an existing file. */
  readonly destination: string;
  /**
   * Directory for partial downloads, which later attempts resume, also of another process. It is created. It must be on
   * the file system of the destination, and only one process may use it, for one download of a URL at a time.
   */
  readonly stateDirectory: string;
  readonly expected?: ExpectedArtifact;
  /** Size limit of the unpacked file in bytes. Default: the expected size, or 256 GiB. */
  readonly largestSize?: number;
  /** Bytes that stay free on the file system; default 0. */
  readonly leaveFree?: number;
  /** Header fields by host, such as credentials. Other hosts never receive them, not even after redirects. */
  readonly headers?: HeadersOfHosts;
  /**
   * URLs that the administrator has configured. A host in a loopback, link-local or private network is asked only if it
   * is the host of one of them, or if one of them is in such a network itself. Default: the artifact's own URL, so that
   * only redirects are checked.
   */
  readonly configuredUrls?: readonly string[];
  /** Names or addresses of further hosts in these networks that may be contacted. */
  readonly allowedHosts?: readonly string[];
  /** Base URL of the buckets that `s3://` names. */
  readonly s3Endpoint?: string;
  /** PEM certificates of authorities, in place of Node's. */
  readonly ca?: string;
  /** Number of ranges fetched concurrently, if the server supports ranges. Default 4. */
  readonly connections?: number;
}

/** Settings of `downloadArtifact`. Progress is in percent; there is none if the server sends no size. */
export interface DownloadOptions extends OperationOptions {
  readonly logger?: Logger;
  /** Milliseconds without data after which a connection counts as lost. Default: a minute. */
  readonly stall?: number;
  /** Default: eight attempts, with delays from one second to two minutes. */
  readonly retryPolicy?: RetryLimits;
}

/** A downloaded file. */
export interface DownloadedArtifact {
  /** Bytes of the unpacked file, holes included. */
  readonly size: number;
  readonly checksums: Checksums;
  /** Bytes received in this call: less than the size of the object after a resumed download. */
  readonly fetched: number;
}
