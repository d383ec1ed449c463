import { constants } from 'node:fs';
import { chmod, copyFile, open } from 'node:fs/promises';
import { ImageError } from '../errors.ts';
import { checksumsOf } from '../hashed-reader.ts';
import type { Checksums, ImageFile } from '../types.ts';
import { PUBLISHED } from './partial-file.ts';
import { type CopyOptions, sparseCopy } from './sparse-copy.ts';

/**
 * Copies an image, as a reflink where the file system has them. Its digests are those of the copy, so that a source
 * that changed meanwhile is noticed in either case.
 *
 * @throws ImageError `provider-refused` if the file is not the one that its builder made; `image-changed`
 */
export async function copyImage(file: ImageFile, target: string, options: CopyOptions): Promise<Checksums> {
  const { path, checksums: known } = file;
  const isShared = known !== undefined && (await reflink(path, target));
  const checksums = isShared ? await checksumsOf(target, options) : await sparseCopy(path, target, options);
  await chmod(target, PUBLISHED); // independent of the umask, and of the file's mode
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
