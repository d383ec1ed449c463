import { copyFile, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  BaseImageBuilder,
  type BuildContext,
  ImageRepository,
  readImages,
} from '@nodepool-builder/image-builder';
import { STATE_FILE } from '@nodepool-builder/image-builder/internal';

/** Builds the image that is copied to fill a directory. */
class TinyBuilder extends BaseImageBuilder {
  override readonly nativeFormats = ['raw'] as const;

  protected override async createImage({ outputPath, imageId }: BuildContext): Promise<void> {
    await writeFile(outputPath('raw'), imageId);
  }
}

/**
 * Fills a directory with images and manifests as builds leave them. One image is built and the others are copies,
 * because each build waits for the disk.
 *
 * @returns the image-ids
 * @throws Error if an image is invalid
 */
export async function makeImages(directory: string, count: number, signal: AbortSignal): Promise<string[]> {
  const imageIds = Array.from(
    { length: count },
    (_, index) => `docs-20161118140211-${String(index).padStart(4, '0')}`,
  );
  const [built = '', ...copies] = imageIds;
  await build(directory, built, signal);
  const file = (imageId: string): string => join(directory, `${imageId}.raw`);
  const manifest = (imageId: string): string =>
    join(directory, '.nodepool-builder/manifests', `${imageId}.json`);
  const text = await readFile(manifest(built), 'utf8');
  const [described] = JSON.parse(text).files;
  // utimes takes seconds as a float, which is exact only for whole numbers.
  const modified = new Date(Math.floor(Date.parse(described.mtime) / 1000) * 1000);
  const write = async (imageId: string): Promise<void> => {
    signal.throwIfAborted();
    if (imageId !== built) await copyFile(file(built), file(imageId));
    await utimes(file(imageId), modified, modified);
    const ownText = text.replaceAll(built, imageId).replaceAll(described.mtime, modified.toISOString());
    await writeFile(manifest(imageId), ownText, { mode: STATE_FILE });
  };
  for (const imageId of [...copies, built]) await write(imageId);
  const whole = (await readImages(directory)).filter((image) =>
    image.files.every((there) => there.checksums),
  );
  if (whole.length !== count) throw new Error(`${whole.length} of ${count} images have a good manifest`);
  return imageIds;
}

/** Removes the manifests in a directory, as if the images had been copied there by hand. */
export async function removeManifests(directory: string): Promise<void> {
  await rm(join(directory, '.nodepool-builder'), { recursive: true });
}

async function build(directory: string, imageId: string, signal: AbortSignal): Promise<void> {
  const repository = await ImageRepository.open(directory, { signal });
  try {
    await new TinyBuilder({ name: 'docs', formats: ['raw'] }).build({ imageId, repository, signal });
  } finally {
    await repository.close();
  }
}
