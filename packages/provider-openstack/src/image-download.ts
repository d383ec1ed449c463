import { createHash } from 'node:crypto';
import { type FileHandle, rename } from 'node:fs/promises';
import type { Logger, OperationOptions } from '@nodepool-builder/image-builder';
import { noImage, withAbort, withNewFile, writeSparse } from '@nodepool-builder/image-builder/internal';
import { CloudError, signalOf, steadyProgress, unlessAbsent } from '@nodepool-builder/image-builder/plugin';
import { dataSize, type GlanceImage, storedDigest } from './glance-image.ts';
import type { ImageApi } from './image-api.ts';
import { retry, type TransferRetries } from './upload/retry.ts';

interface Download {
  readonly images: ImageApi;
  readonly path: string;
  readonly logger: Logger;
  readonly retries: TransferRetries;
}

/** An image to save, as described by the cloud. */
export interface SavedImage extends Download {
  readonly image: GlanceImage;
  /** Remedy if the data does not match the digest. */
  readonly remedy: string;
}

/**
 * Downloads an image to a file. The file appears only after its digest has been verified.
 *
 * @throws CloudError, ImageError `image-not-found`
 */
export async function downloadImage(
  { externalId, path, ...download }: Download & { readonly externalId: string },
  options: OperationOptions,
): Promise<void> {
  const { images } = download;
  const image = await images.get(externalId, signalOf(options)).catch(unlessAbsent);
  if (image === undefined) throw noImage(`cloud ${images.cloud}`, externalId);
  const partial = `${path}.partial`;
  await saveImage({ ...download, image, path: partial, remedy: 'upload it again' }, options);
  await rename(partial, path);
}

/**
 * Saves an image in a sparse file and verifies its digest. Removes the file after an error.
 *
 * @throws CloudError
 */
export async function saveImage(save: SavedImage, options: OperationOptions): Promise<void> {
  const { image, path, retries, logger } = save;
  const name = `download of image ${image.id}`;
  const onProgress = steadyProgress(options.onProgress ?? (() => {}));
  await withAbort(options, async (signal) => {
    const attempt = (): Promise<void> =>
      withNewFile(path, `saving image ${image.id} to ${path}`, (file) =>
        write(save, file, onProgress, signal),
      );
    await retry(attempt, { ...retries, name, logger, signal });
  });
  onProgress({ done: 1, total: 1 });
}

async function write(
  { images, image, remedy }: SavedImage,
  file: FileHandle,
  onProgress: ReturnType<typeof steadyProgress>,
  signal: AbortSignal,
): Promise<void> {
  const mismatch = (what: string): CloudError =>
    new CloudError(
      'checksum-mismatch',
      `cloud ${images.cloud}: image ${image.id}: ${what}: it changed during the transfer or in the cloud; ${remedy}, and if that also fails, check the cloud's image store`,
    );
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
  const value = hash.digest('hex');
  if (value === digest?.value) return; // A correct digest counts even if the cloud reports another size.
  if (done !== (total ?? done)) throw mismatch(`received ${done} of ${total} bytes`);
  if (digest !== undefined)
    throw mismatch(`received ${digest.algorithm} ${value} instead of ${digest.value}`);
}
