import { readdir, realpath } from 'node:fs/promises';
import { imageIdFault } from '../image-id.ts';
import { asImageError } from '../system-error.ts';
import type { Image } from '../types.ts';
import { parseImageFileName } from './image-file-name.ts';
import { readImage } from './image-reader.ts';
import { Layout } from './layout.ts';
import { SettledFiles } from './settled-files.ts';

/**
 * Reads the complete images of a directory once, without locking it: another process may own it.
 *
 * @throws ImageError `directory-not-usable`
 */
export async function readImages(directory: string): Promise<Image[]> {
  try {
    const layout = new Layout(await realpath(directory));
    const parsed = (await readdir(layout.root)).flatMap((name) => {
      const imageId = parseImageFileName(name)?.imageId;
      return imageId === undefined || imageIdFault(imageId) !== undefined ? [] : [{ name, imageId }];
    });
    const files = new SettledFiles(layout.root);
    await files.look(new Map(parsed.map(({ name }) => [name, 'present'])));
    files.close();
    const images: Image[] = [];
    for (const imageId of new Set(parsed.map((file) => file.imageId))) {
      const image = await readImage(imageId, layout, files, undefined);
      if (image !== undefined) images.push(image);
    }
    return images;
  } catch (error) {
    throw asImageError(error, `reading "${directory}"`);
  }
}
