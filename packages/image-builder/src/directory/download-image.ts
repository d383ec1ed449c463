import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { noImage } from '../cloud/image-errors.ts';
import { ImageError } from '../errors.ts';
import type { OperationOptions } from '../types.ts';
import { copyImage } from './copy-image.ts';
import { readWholeImages } from './manifest.ts';

/**
 * Copies an image of a directory to a file, and compares its SHA-256 with the manifest.
 *
 * @throws ImageError `image-not-found`, `image-changed`
 */
export async function downloadImage(
  directory: string,
  externalId: string,
  path: string,
  options: OperationOptions,
): Promise<void> {
  const images = await readWholeImages(directory);
  const manifest = images.find((image) => image.externalId === externalId)?.manifest;
  if (manifest === undefined) throw noImage(directory, externalId);
  const partial = `${path}.partial`;
  await rm(partial, { force: true });
  try {
    const source = { path: join(directory, externalId), size: manifest.size };
    const { sha256 } = await copyImage(source, partial, options);
    if (sha256 !== manifest.sha256) {
      throw new ImageError(
        'image-changed',
        `the SHA-256 of ${source.path} is ${sha256}, not ${manifest.sha256} as in its manifest; upload it again`,
      );
    }
    await rename(partial, path);
  } finally {
    await rm(partial, { force: true });
  }
}
