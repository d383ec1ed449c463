import { ImageError, type Logger, type OperationOptions } from '@nodepool-builder/image-builder';
import {
  checkDisk,
  checkDiskSize,
  checkSelfContained,
  DEFAULT_LARGEST_DISK,
  type DiskFile,
  isConvertible,
} from '@nodepool-builder/image-builder/module-kit';
import type { ArtifactAccess } from '../builds/artifact-access.ts';
import { withoutQuery } from '../builds/artifact-url.ts';
import type { ImageArtifact } from '../builds/image-artifact.ts';
import { downloadArtifact } from '../download/download-artifact.ts';
import type { KeptFile, KeptFiles } from './kept-files.ts';

/** Bytes that stay free where images are, so that a download which fills the disk does not stop what else is recorded there. */
const LEAVE_FREE = 64 * 2 ** 20;

/** Settings of {@link fetchArtifact}. */
export interface FetchOptions extends OperationOptions {
  readonly access: ArtifactAccess;
  readonly logger: Logger;
  readonly signal: AbortSignal;
  /** In bytes, as a guest sees it; default 256 GiB. */
  readonly largestDisk?: number | undefined;
}

/**
 * Downloads an artifact, and keeps it if it is what it is said to be.
 *
 * @throws ImageError
 * @throws the signal's reason
 */
export async function fetchArtifact(
  artifact: ImageArtifact,
  kept: KeptFiles,
  { access, largestDisk = DEFAULT_LARGEST_DISK, ...options }: FetchOptions,
): Promise<KeptFile> {
  const { format, url, ...expected } = artifact;
  const destination = kept.draft(artifact);
  const { size } = await downloadArtifact(
    {
      ...access,
      url,
      destination,
      stateDirectory: kept.downloads,
      expected,
      largestSize: largestDisk,
      leaveFree: LEAVE_FREE,
    },
    options,
  );
  if (size === 0) {
    throw new ImageError('artifact-damaged', `${withoutQuery(url)} is empty; correct the job that builds it`);
  }
  await checkFormat({ format, path: destination }, withoutQuery(url), { ...options, largestDisk });
  return await kept.keep(artifact);
}

/** Refuses a file that is not an image of this format, and one that names files of this host. */
async function checkFormat(
  file: DiskFile,
  name: string,
  { signal, largestDisk }: { readonly signal: AbortSignal; readonly largestDisk: number },
): Promise<void> {
  try {
    await checkSelfContained(file);
    if (!isConvertible(file.format)) return;
    await checkDisk(file);
    await checkDiskSize(file, largestDisk, { signal });
  } catch (cause) {
    if (!(cause instanceof ImageError) || !REFUSALS.has(cause.code)) throw cause;
    throw new ImageError(
      cause.code === 'image-too-large' ? 'artifact-too-large' : 'artifact-damaged',
      `${name} is not a ${file.format} image that can be used: ${cause.message}; correct the job, or the format under artifacts`,
      { cause },
    );
  }
}

const REFUSALS: ReadonlySet<string> = new Set([
  'conversion-failed',
  'image-not-self-contained',
  'image-too-large',
]);
