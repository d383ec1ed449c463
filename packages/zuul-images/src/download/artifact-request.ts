import type { Checksums, HashThreads, Logger, OperationOptions } from '@nodepool-builder/image-builder';
import type { RetryLimits } from '@nodepool-builder/image-builder/module-kit';
import type { ExpectedArtifact } from './expected.ts';
import type { HeadersOfHosts } from './http-source.ts';

/** Which artifact is wanted, and where. */
export interface ArtifactRequest {
  /** Absolute: http, https, or `s3://bucket/key`. Its path ends in `.zst`, `.xz` or `.gz` if it is packed. */
  readonly url: string;
  /** Path of the unpacked file. It appears there whole, or not at all; what had the name before is replaced. */
  readonly destination: string;
  /**
   * Where what has come is kept for another try, this process's or its successor's. It is made; it lies on the file
   * system of the destination, and one process uses it, for one download of an URL at a time.
   */
  readonly stateDirectory: string;
  readonly expected?: ExpectedArtifact;
  /** Most bytes of the unpacked file; default the expected size, or 256 GiB. */
  readonly largestSize?: number;
  /** Bytes that stay free on the file system; default 0. */
  readonly leaveFree?: number;
  /** Header fields, credentials for one, for each host that is to get them; no other does, after redirects either. */
  readonly headers?: HeadersOfHosts;
  /**
   * URLs that the administrator has configured. A host in a loopback, link-local or private network is asked only if it
   * is the host of one of them, or if one of them is in such a network itself. Default: the artifact's own URL, so that
   * only redirects are checked.
   */
  readonly configuredUrls?: readonly string[];
  /** Names or addresses of further hosts in such networks that are asked. */
  readonly allowedHosts?: readonly string[];
  /** The URL under which buckets lie that `s3://` names. */
  readonly s3Endpoint?: string;
  /** Certificates of authorities, PEM, in place of the usual ones. */
  readonly ca?: string;
  /** Ranges that are fetched at the same time from a server that can do that; default 4. */
  readonly connections?: number;
}

/** Settings of `downloadArtifact`. Progress counts hundredths, if the server tells the size. */
export interface DownloadOptions extends OperationOptions {
  readonly logger?: Logger;
  /** Shared by what one process reads and downloads, so that there are few threads. Default: threads of its own. */
  readonly threads?: HashThreads;
  /** Milliseconds without a byte after which a connection counts as lost; default a minute. */
  readonly stall?: number;
  /** Default: eight attempts, with pauses from one second to two minutes. */
  readonly retryPolicy?: RetryLimits;
}

/** A file that was downloaded. */
export interface DownloadedArtifact {
  /** Bytes of the unpacked file, holes included. */
  readonly size: number;
  readonly checksums: Checksums;
  /** Bytes that came over the wire in this call: fewer than the object has if an earlier call had begun. */
  readonly fetched: number;
}
