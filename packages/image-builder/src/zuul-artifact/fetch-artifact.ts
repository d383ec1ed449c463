import { downloadArtifact } from '../download/download-artifact.ts';
import { ImageError } from '../errors.ts';
import { isConvertible } from '../formats/convert.ts';
import type { DiskFile } from '../formats/disk-information.ts';
import { checkDisk, checkSelfContained } from '../formats/self-contained.ts';
import type { Logger, OperationOptions } from '../types.ts';
import type { ArtifactAccess } from '../zuul/artifact-access.ts';
import { withoutQuery } from '../zuul/artifact-url.ts';
import type { ImageArtifact } from '../zuul/image-artifact.ts';
import type { KeptFile, KeptFiles } from './kept-files.ts';

/** Bytes that stay free where images are, so that a download which fills the disk does not stop what else is recorded there. */
const LEAVE_FREE = 64 * 2 ** 20;

/** Settings of {@link fetchArtifact}. */
export interface FetchOptions extends OperationOptions {
  readonly access: ArtifactAccess;
  readonly logger: Logger;
  readonly signal: AbortSignal;
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
  { access, ...options }: FetchOptions,
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
      leaveFree: LEAVE_FREE,
    },
    options,
  );
  await checkFormat({ format, path: destination }, size, withoutQuery(url));
  return await kept.keep(artifact);
}

/** Refuses a file that is not an image of this format, and one that names files of this host. */
async function checkFormat(file: DiskFile, size: number, name: string): Promise<void> {
  if (size === 0)
    throw new ImageError('artifact-damaged', `${name} is empty; correct the job that builds it`);
  try {
    await checkSelfContained(file);
    if (isConvertible(file.format)) await checkDisk(file);
  } catch (cause) {
    if (!(cause instanceof ImageError) || !REFUSALS.has(cause.code)) throw cause;
    throw new ImageError(
      'artifact-damaged',
      `${name} is not a ${file.format} image that can be used: ${cause.message}; correct the job, or the format under artifacts`,
      { cause },
    );
  }
}

const REFUSALS: ReadonlySet<string> = new Set(['conversion-failed', 'image-not-self-contained']);
