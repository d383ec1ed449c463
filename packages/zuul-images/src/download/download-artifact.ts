import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { ImageError } from '@nodepool-builder/image-builder';
import { asImageError, makeStateDirectory } from '@nodepool-builder/image-builder/internal';
import { signalOf } from '@nodepool-builder/image-builder/plugin';
import { fetchObject } from './fetch-object.ts';
import { HttpSource } from './http-source.ts';
import { Retries, TransientError, UnusableRangesError } from './retries.ts';
import { Spool } from './spool.ts';
import { findObject, findWhole } from './stored-object.ts';
import { runTaskGroup } from './task-group.ts';
import type { ArtifactRequest, DownloadOptions, ExpectedDigests, Transfer } from './transfer.ts';
import { checkFreeSpace, tooLarge, type UnpackedObject, unpackObject } from './unpack-object.ts';
import { codingOf } from './unpacking.ts';

/** A downloaded file, in the directory of the request. */
export interface DownloadedArtifact {
  readonly path: string;
  /** Size of the unpacked file in bytes, holes included. */
  readonly size: number;
  /** SHA-256 of the unpacked file, in hexadecimal. */
  readonly sha256: string;
}

/**
 * Fetches an artifact over HTTP, unpacks and digests it on the way, and writes a sparse file. It resumes a call that
 * was aborted, failed with `download-failed`, or died with its process. After other failures it removes the directory.
 * The file is not synced to disk.
 *
 * @throws ImageError `artifact-expired`, `artifact-refused`, `artifact-damaged`, `artifact-too-large`,
 * `download-failed`, `disk-full`, `directory-not-usable`, `command-not-found` (for xz), `invalid-configuration`
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
  let useRanges = true;
  try {
    await makeStateDirectory(directory);
    for (;;) {
      try {
        return await attempt(source, request, { ...options, useRanges }, signal);
      } catch (error) {
        if (!(error instanceof TransientError)) throw error;
        useRanges &&= !(error instanceof UnusableRangesError);
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

/** @throws TransientError if the download has to start over */
async function attempt(
  source: HttpSource,
  request: ArtifactRequest,
  options: DownloadOptions & { readonly useRanges: boolean },
  signal: AbortSignal,
): Promise<DownloadedArtifact> {
  const { name } = source;
  const { directory, maxSize: limit, leaveFree } = request;
  const object = options.useRanges ? await findObject(source, signal) : await findWhole(source, signal);
  let spool: Spool | undefined;
  try {
    const coding = codingOf(name, 'stream' in object ? object.contentEncoding : undefined);
    if (coding === undefined && (object.size ?? 0) > limit) throw tooLarge(name, limit);
    spool = await Spool.open(directory, object);
    const { reserve = checkFreeSpace } = options;
    await reserve(spool.path, (object.size ?? 0) - spool.present + leaveFree);
    const size = object.size ?? 'an unknown number of';
    options.logger?.info(`downloading ${name}: ${size} bytes, ${spool.present} of them are already on disk`);
    const path = coding === undefined ? spool.path : unpackedPath(directory);
    const transfer: Transfer = { source, object, spool, request, options };
    try {
      const [, unpacked] = await runTaskGroup<[unknown, UnpackedObject]>(signal, [
        (both) => fetchObject(transfer, both),
        (both) => unpackObject(transfer, coding, path, both),
      ]);
      checkDigests(name, request, unpacked);
      return { path, size: unpacked.size, sha256: unpacked.checksums.sha256 };
    } catch (error) {
      throw isDamaged(error) ? (transfer.interruption ?? error) : error;
    }
  } finally {
    if ('stream' in object) object.stream.response.destroy();
    await spool?.close();
  }
}

function isDamaged(error: unknown): boolean {
  return error instanceof ImageError && error.code === 'artifact-damaged';
}

function checkDigests(
  name: string,
  { sha256, md5, crc32 }: ExpectedDigests,
  { checksums, crc32: storedCrc32 }: UnpackedObject,
): void {
  const digests = [
    ['crc32 of the stored object', crc32, storedCrc32.toString(16).padStart(8, '0')],
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
