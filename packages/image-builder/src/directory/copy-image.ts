import { constants } from 'node:fs';
import { chmod, copyFile, open } from 'node:fs/promises';
import { type BandwidthLimit, metered } from '../bandwidth-limit.ts';
import { syncToDisk } from '../durable.ts';
import { ImageError } from '../errors.ts';
import { checksumsOf, HashedReader } from '../hashed-reader.ts';
import { steadyProgress } from '../progress.ts';
import { writeSparse } from '../sparse.ts';
import { errnoOf } from '../system-error.ts';
import type { Checksums, ImageFile, OperationOptions } from '../types.ts';
import { PUBLISHED } from './partial-file.ts';

/** Settings of {@link copyImage}. */
export interface CopyOptions extends OperationOptions {
  /** Shared by concurrent copies. Default: none. */
  readonly limit?: BandwidthLimit | undefined;
}

/** Codes of copyfile(2) where the file system has no reflinks between these files. */
const NO_REFLINK = new Set(['ENOTSUP', 'EOPNOTSUPP', 'EXDEV', 'EINVAL', 'ENOTTY', 'ENOSYS']);

/**
 * Copies an image to the disk, as a reflink where the file system has them, else with holes in place of zeros.
 *
 * @returns the checksums of the copy, so that a source that changed meanwhile is noticed
 * @throws ImageError `provider-refused` if the file is not the one that its builder made; `image-changed`, `image-missing`
 */
export async function copyImage(
  { path, checksums: known }: Pick<ImageFile, 'path' | 'checksums'>,
  target: string,
  { onProgress, ...options }: CopyOptions = {},
): Promise<Checksums> {
  const copying = { ...options, ...(onProgress && { onProgress: steadyProgress(onProgress) }) };
  const isShared = known !== undefined && (await reflink(path, target));
  const checksums = isShared ? await checksumsOf(target, copying) : await sparseCopy(path, target, copying);
  await chmod(target, PUBLISHED); // independent of the umask, and of the file's mode
  if (known === undefined || checksums.sha256 === known.sha256) return checksums;
  throw new ImageError(
    'provider-refused',
    `${path} is not what the builder made: its sha256 is ${checksums.sha256}, not ${known.sha256}; build the image again`,
  );
}

/** Shares the blocks of a file; false where the file system cannot. */
async function reflink(source: string, target: string): Promise<boolean> {
  try {
    await copyFile(source, target, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE_FORCE);
  } catch (error) {
    if (NO_REFLINK.has(errnoOf(error) ?? '')) return false;
    throw error;
  }
  await syncToDisk(target);
  return true;
}

/** Copies a file and hashes it on the way, in constant memory. */
async function sparseCopy(
  source: string,
  target: string,
  { limit, signal = new AbortController().signal, ...options }: CopyOptions,
): Promise<Checksums> {
  // A deletion does not wait for copies.
  const from = await HashedReader.open(source, { ...options, signal, mayBeRemoved: true });
  try {
    const to = await open(target, 'wx', PUBLISHED);
    try {
      let position = 0;
      for await (const piece of metered(from.pieces(), { onBytes: () => {}, limit, signal })) {
        await writeSparse(to, piece, position);
        position += piece.length;
      }
      await to.truncate(position); // a hole at the end has no bytes to write
      await to.sync();
    } finally {
      await to.close();
    }
    return await from.checksums;
  } finally {
    await from.close();
  }
}
