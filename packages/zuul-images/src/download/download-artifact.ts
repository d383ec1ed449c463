import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type Checksums,
  ImageError,
  type Logger,
  type OperationOptions,
} from '@nodepool-builder/image-builder';
import {
  asImageError,
  makeStateDirectory,
  type RetryLimits,
  signalOf,
  steadyProgress,
} from '@nodepool-builder/image-builder/module-kit';
import { fetchObject } from './fetch-object.ts';
import { type ArtifactAccess, HttpSource } from './http-source.ts';
import { Retries, TransientFailure } from './retries.ts';
import { Spool } from './spool.ts';
import { findObject } from './stored-object.ts';
import { runTaskGroup } from './task-group.ts';
import { checkFreeSpace, tooLarge, type UnpackedObject, unpackObject } from './unpack-object.ts';
import { codingOf } from './unpacking.ts';

const CONNECTIONS = 4;

/** Digests that a job returned, in lower-case hexadecimal digits. Absent ones are not checked. */
export interface ExpectedDigests {
  /** Of the unpacked file. */
  readonly sha256?: string;
  /** Of the unpacked file. */
  readonly md5?: string;
  /** Of the object as it is stored, compressed or not. */
  readonly crc32?: string;
}

/** An artifact and its destination. */
export interface ArtifactRequest extends ExpectedDigests {
  /** Absolute: http, https, or `s3://bucket/key`. A compressed object ends in `.zst`, `.xz` or `.gz`. */
  readonly url: string;
  readonly access: ArtifactAccess;
  /**
   * Directory of this download alone, which is created. After an interruption, a later call for the same artifact
   * resumes with its content; the signature in the URL may differ.
   */
  readonly directory: string;
  /** Size limit of the unpacked file in bytes. */
  readonly largestSize: number;
  /** Bytes that stay free on the file system. */
  readonly leaveFree: number;
}

/** Settings of {@link downloadArtifact}. Progress is in percent; there is none if the server sends no size. */
export interface DownloadOptions extends OperationOptions {
  readonly logger?: Logger;
  /** Number of ranges fetched concurrently. Default 4. */
  readonly connections?: number;
  /** Milliseconds without data after which a connection counts as lost. Default: a minute. */
  readonly stall?: number;
  /** Default: eight attempts, with delays from one second to two minutes. */
  readonly retryPolicy?: RetryLimits;
}

/** A downloaded file, in the directory of the request. */
export interface DownloadedArtifact {
  readonly path: string;
  /** Bytes of the unpacked file, holes included. */
  readonly size: number;
  readonly checksums: Checksums;
}

/**
 * Fetches an artifact over HTTP, unpacks and digests it on the way, and writes a sparse file. It resumes a call that was
 * aborted, failed with `download-failed`, or died with its process; other failures remove the directory. The file is
 * not synced to disk.
 *
 * @throws ImageError `artifact-expired`, `artifact-refused`, `artifact-damaged`, `artifact-too-large`,
 *   `download-failed`, `disk-full`, `directory-not-usable`, `command-not-found` (for xz), `invalid-configuration`
 * @throws the signal's reason
 */
export async function downloadArtifact(
  request: ArtifactRequest,
  options: DownloadOptions = {},
): Promise<DownloadedArtifact> {
  const { url, access, directory } = request;
  const signal = signalOf(options);
  signal.throwIfAborted();
  const source = new HttpSource(url, access, options.stall);
  const retries = new Retries(options.retryPolicy, options.logger);
  try {
    await makeStateDirectory(directory);
    for (;;) {
      try {
        return await attempt(source, request, options, signal);
      } catch (error) {
        if (!(error instanceof TransientFailure)) throw error;
        await retries.pause(error, 0, signal);
      }
    }
  } catch (error) {
    const isResumable = signal.aborted || (error instanceof ImageError && error.code === 'download-failed');
    const garbage = isResumable ? unpackedPath(directory) : directory;
    await rm(garbage, { recursive: true, force: true }).catch(() => {}); // the first error is thrown
    throw asImageError(error, `downloading ${source.name}`);
  } finally {
    source.close();
  }
}

function unpackedPath(directory: string): string {
  return join(directory, 'unpacked');
}

/** @throws TransientFailure if the download has to start over */
async function attempt(
  source: HttpSource,
  request: ArtifactRequest,
  options: DownloadOptions,
  signal: AbortSignal,
): Promise<DownloadedArtifact> {
  const { name } = source;
  const { directory, largestSize: limit, leaveFree } = request;
  const { logger, onProgress, connections = CONNECTIONS, retryPolicy } = options;
  const object = await findObject(source, signal);
  let spool: Spool | undefined;
  try {
    const coding = codingOf(source.name, object.contentEncoding);
    if (coding === undefined && (object.size ?? 0) > limit) throw tooLarge(name, limit);
    spool = await Spool.open(directory, object);
    await checkFreeSpace(spool.path, (object.size ?? 0) - spool.present + leaveFree);
    const size = object.size ?? 'an unknown number of';
    logger?.info(`downloading ${name}: ${size} bytes, ${spool.present} of them are already on disk`);

    const progress = onProgress && steadyProgress(onProgress);
    const path = coding === undefined ? spool.path : unpackedPath(directory);
    const fetching = { source, object, spool, connections, leaveFree, retryPolicy, logger };
    const unpacking = {
      spool,
      coding,
      path,
      name,
      limit,
      leaveFree,
      withCrc32: request.crc32 !== undefined,
      onProgress: (done: number) => progress?.({ done, total: object.size ?? 0 }),
    };
    const [, unpacked] = await runTaskGroup<[unknown, UnpackedObject]>(signal, [
      (both) => fetchObject(fetching, both),
      (both) => unpackObject(unpacking, both),
    ]);
    checkDigests(name, request, unpacked);
    return { path, size: unpacked.size, checksums: unpacked.checksums };
  } finally {
    if ('answer' in object) object.answer.response.destroy();
    await spool?.close();
  }
}

function checkDigests(
  name: string,
  { sha256, md5, crc32 }: ExpectedDigests,
  { checksums, crc32: storedCrc32 }: UnpackedObject,
): void {
  const digests = [
    ['crc32 of the stored object', crc32, storedCrc32?.toString(16).padStart(8, '0')],
    ['sha256', sha256, checksums.sha256],
    ['md5', md5, checksums.md5],
  ] as const;
  for (const [digest, expected, actual] of digests) {
    if (expected === undefined || expected === actual) continue;
    throw new ImageError(
      'artifact-damaged',
      `${name} is damaged: its ${digest} is ${actual}, expected was ${expected}; run the job that builds it again`,
    );
  }
}
