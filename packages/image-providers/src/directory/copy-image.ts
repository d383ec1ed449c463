import { constants } from 'node:fs';
import { copyFile, open } from 'node:fs/promises';
import {
  type Checksums,
  ImageError,
  type ImageFile,
  type OperationOptions,
} from '@nodepool-builder/image-builder';
import { sparseCopy } from './sparse-copy.ts';

/**
 * Copies an image, as a reflink where the file system has them and the digests are known.
 *
 * @returns the digests of the copy
 * @throws ImageError `provider-refused` if the file is not what its builder made
 */
export async function copyImage(
  file: ImageFile,
  target: string,
  options: OperationOptions,
): Promise<Checksums> {
  const { path, checksums: known } = file;
  if (known !== undefined && (await reflink(path, target))) return known;
  const checksums = await sparseCopy(path, target, options);
  if (known === undefined || checksums.sha256 === known.sha256) return checksums;
  throw new ImageError(
    'provider-refused',
    `${path} is not what the builder made: its sha256 is ${checksums.sha256}, not ${known.sha256}; build the image again`,
  );
}

/** Shares the blocks of a file, where the file system can; false where it cannot. */
async function reflink(source: string, target: string): Promise<boolean> {
  try {
    await copyFile(source, target, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE_FORCE);
  } catch (error) {
    if (NO_REFLINK.has((error as NodeJS.ErrnoException).code ?? '')) return false;
    throw error;
  }
  const file = await open(target, 'r');
  try {
    await file.sync();
  } finally {
    await file.close();
  }
  return true;
}

const NO_REFLINK = new Set(['ENOTSUP', 'EOPNOTSUPP', 'EXDEV', 'EINVAL', 'ENOTTY', 'ENOSYS']);
