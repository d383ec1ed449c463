import { constants } from 'node:fs';
import { chmod, copyFile, open } from 'node:fs/promises';
import { type BandwidthLimit, metered } from '../bandwidth-limit.ts';
import { syncToDisk } from '../durable.ts';
import { ImageError } from '../errors.ts';
import { HashedReader } from '../hashed-reader.ts';
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

/** Error codes of copyfile(2) if the file system does not support reflinks between these files. */
const NO_REFLINK = new Set(['ENOTSUP', 'EOPNOTSUPP', 'EXDEV', 'EINVAL', 'ENOTTY', 'ENOSYS']);

/**
 * Copies an image durably, as a reflink if the file system supports it, else with holes for zeros.
 *
 * @returns the known checksums, or else those of the copy
 * @throws ImageError `provider-refused` for a file of another size; `image-changed`, `image-missing`
 */
export async function copyImage(
  { path, size, checksums }: Pick<ImageFile, 'path' | 'size' | 'checksums'>,
  target: string,
  { limit, onProgress, signal = new AbortController().signal }: CopyOptions = {},
): Promise<Checksums> {
  const from = await HashedReader.open(path, {
    checksums,
    signal,
    mayBeRemoved: true, // a deletion does not wait for copies
    ...(onProgress && { onProgress: steadyProgress(onProgress) }),
  });
  try {
    if (from.size !== size) {
      const how = `it has ${from.size} bytes, not ${size}`;
      const message = `${path} differs from what the builder made: ${how}; build the image again`;
      throw new ImageError('provider-refused', message);
    }
    const isShared = checksums !== undefined && (await reflink(path, target));
    if (isShared) await from.check();
    else await sparseCopy(metered(from.pieces(), { onBytes: () => {}, limit, signal }), target);
    await chmod(target, PUBLISHED); // independent of the umask, and of the file's mode
    return await from.checksums;
  } finally {
    await from.close();
  }
}

/** Shares the blocks of a file. Returns false if the file system does not support it. */
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

async function sparseCopy(pieces: AsyncIterable<Buffer>, target: string): Promise<void> {
  const to = await open(target, 'wx', PUBLISHED);
  try {
    let position = 0;
    for await (const piece of pieces) {
      await writeSparse(to, piece, position);
      position += piece.length;
    }
    await to.truncate(position); // a hole at the end has no bytes to write
    await to.sync();
  } finally {
    await to.close();
  }
}
