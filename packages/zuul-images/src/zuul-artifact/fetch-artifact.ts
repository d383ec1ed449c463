import { ImageError, type Logger, type OperationOptions } from '@nodepool-builder/image-builder';
import {
  checkDisk,
  checkDiskSize,
  checkSelfContained,
  DEFAULT_MAX_DISK_SIZE,
  type DiskFile,
  isConvertible,
} from '@nodepool-builder/image-builder/internal';
import type { ImageArtifact } from '../builds/image-artifact.ts';
import { nameOf } from '../download/artifact-url.ts';
import { downloadArtifact } from '../download/download-artifact.ts';
import type { ArtifactAccess } from '../download/http-source.ts';
import type { DownloadOptions } from '../download/transfer.ts';
import type { KeptFile, KeptFiles } from './kept-files.ts';

/** Bytes to leave free in images-dir, so that a download does not prevent records from being written. */
const LEAVE_FREE = 64 * 2 ** 20;

/** Error codes of a check that mean that the file is not a usable image. */
const DAMAGED: ReadonlySet<string> = new Set([
  'conversion-failed',
  'image-not-self-contained',
  'image-too-large',
]);

/** Settings of {@link fetchArtifact}. */
export interface FetchOptions extends OperationOptions {
  readonly access: ArtifactAccess;
  readonly logger: Logger;
  readonly reserve: NonNullable<DownloadOptions['reserve']>;
  readonly signal: AbortSignal;
  /** Maximum virtual size of a disk in bytes. Default 256 GiB. */
  readonly maxDiskSize: number | undefined;
}

/**
 * Downloads an artifact, checks its format, and keeps it.
 *
 * @throws ImageError
 */
export async function fetchArtifact(
  artifact: ImageArtifact,
  kept: KeptFiles,
  { access, maxDiskSize = DEFAULT_MAX_DISK_SIZE, ...options }: FetchOptions,
): Promise<KeptFile> {
  const directory = kept.partial(artifact);
  const { path, size, sha256 } = await downloadArtifact(
    { ...artifact, access, directory, maxSize: maxDiskSize, leaveFree: LEAVE_FREE },
    options,
  );
  const name = nameOf(artifact.url);
  if (size === 0)
    throw new ImageError('artifact-damaged', `${name} is empty; correct the job that builds it`);
  await checkFormat({ format: artifact.format, path }, name, maxDiskSize, options.signal);
  return await kept.keep(artifact, path, sha256);
}

/** Rejects a file that is not an image of this format, or that refers to files of this host. */
async function checkFormat(
  file: DiskFile,
  name: string,
  maxDiskSize: number,
  signal: AbortSignal,
): Promise<void> {
  try {
    await checkSelfContained(file);
    if (!isConvertible(file.format)) return;
    await checkDisk(file);
    await checkDiskSize(file, maxDiskSize, { signal });
  } catch (cause) {
    if (!(cause instanceof ImageError) || !DAMAGED.has(cause.code)) throw cause;
    throw new ImageError(
      cause.code === 'image-too-large' ? 'artifact-too-large' : 'artifact-damaged',
      `${name} is not a usable ${file.format} image: ${cause.message}; correct the job, or the format under artifacts`,
      { cause },
    );
  }
}
