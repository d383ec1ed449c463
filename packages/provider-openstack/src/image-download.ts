import { createHash } from 'node:crypto';
import { type FileHandle, open, rm } from 'node:fs/promises';
import type { Logger, OperationOptions } from '@nodepool-builder/image-builder';
import { asImageError, steadyProgress, writeSparse } from '@nodepool-builder/image-builder/module-kit';
import { dataSize, type GlanceImage, storedDigest } from './glance-image.ts';
import type { ImageApi } from './image-api.ts';
import { OpenStackError } from './openstack-error.ts';
import { retry, type TransferRetries } from './upload/retry.ts';

/** An image to download. */
export interface ImageDownload extends OperationOptions {
  readonly images: ImageApi;
  readonly image: GlanceImage;
  /** The file; removed after a failure. */
  readonly path: string;
  readonly retry: TransferRetries;
  /** Subject of the log lines. */
  readonly name: string;
  readonly logger: Logger;
  readonly signal: AbortSignal;
}

/**
 * Downloads an image to a file, with holes for zeros, and compares its digest with the one that Glance reports.
 *
 * @throws OpenStackError `checksum-mismatch`
 */
export async function downloadImage(download: ImageDownload): Promise<void> {
  const { image, path, retry: retries, name, logger, signal } = download;
  const onProgress = steadyProgress(download.onProgress ?? (() => {}));
  const attempt = async (): Promise<void> => {
    try {
      const file = await open(path, 'w');
      try {
        await write(file, download, onProgress);
      } finally {
        await file.close();
      }
    } catch (error) {
      throw asImageError(error, `saving image ${image.id} to ${path}`);
    }
  };
  try {
    await retry(attempt, { ...retries, name, logger, signal });
  } catch (error) {
    await rm(path, { force: true });
    throw error;
  }
  onProgress({ done: 1, total: 1 });
}

async function write(
  file: FileHandle,
  { images, image, signal }: ImageDownload,
  onProgress: ReturnType<typeof steadyProgress>,
): Promise<void> {
  const digest = storedDigest(image);
  const hash = createHash(digest?.algorithm ?? 'md5');
  const total = dataSize(image);
  let done = 0;
  for await (const piece of await images.download(image.id, signal)) {
    hash.update(piece);
    await writeSparse(file, piece, done);
    done += piece.length;
    if (total !== undefined) onProgress({ done, total });
  }
  await file.truncate(done);
  if (done !== (total ?? done)) throw mismatch(images, image, `received ${done} of ${total} bytes`);
  const value = hash.digest('hex');
  if (digest !== undefined && value !== digest.value) {
    throw mismatch(
      images,
      image,
      `received ${digest.algorithm} ${value} instead of ${digest.value}`,
    );
  }
}

function mismatch({ cloud }: ImageApi, { id }: GlanceImage, what: string): OpenStackError {
  return new OpenStackError(
    'checksum-mismatch',
    `cloud ${cloud}: image ${id}: ${what}: it changed during the transfer or in the cloud; build it again, and if that fails too, look at the cloud's image store`,
  );
}
