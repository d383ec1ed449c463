import { ImageError, type ImageFormat } from '@nodepool-builder/image-builder';
import { type DatedImage, Mutex, newestBuildFirst } from '@nodepool-builder/image-builder/internal';
import type { ObjectStore } from './object-store.ts';
import type { StoredImage, StoredImages } from './stored-images.ts';

/** Max consecutive writes of a pointer. */
const ROUNDS = 10;

/** Objects that point to the latest build of each image. */
export class LatestPointers {
  readonly #store: ObjectStore;
  readonly #images: StoredImages;
  readonly #mutex = new Mutex();

  constructor(store: ObjectStore, images: StoredImages) {
    this.#store = store;
    this.#images = images;
  }

  /** Writes the key and the manifest of the latest build to `<image-name>-latest.<extension>.json`. */
  async point(imageName: string, format: ImageFormat, signal: AbortSignal, without?: string): Promise<void> {
    const key = this.#store.keys.latest(imageName, format);
    await this.#mutex.run(async () => {
      // Repeats after each change, because another process may have written the pointer without seeing this image.
      for (let round = 0; round < ROUNDS; round++) {
        const before = await this.read(imageName, format, signal);
        const images = (await this.#images.whole(signal)).filter(
          ({ externalId, manifest }) =>
            externalId !== without && manifest['image-name'] === imageName && manifest.format === format,
        );
        const [newest] = newestBuildFirst(images, describe, Date.now());
        const text =
          newest && `${JSON.stringify({ 'external-id': newest.externalId, ...newest.manifest }, null, 2)}\n`;
        if (text === before) return;
        await (text === undefined ? this.#store.remove(key, signal) : this.#store.write(key, text, signal));
      }
      this.#store.warn(`other processes still change ${key} after ${ROUNDS} changes`);
    });
  }

  /** @throws ImageError `provider-refused` if a foreign object has the name of the pointer */
  async read(imageName: string, format: ImageFormat, signal: AbortSignal): Promise<string | undefined> {
    const key = this.#store.keys.latest(imageName, format);
    const text = await this.#store.read(key, signal);
    if (text === undefined || /^\{\s*"external-id":/.test(text)) return text;
    throw foreignObject(this.#store.bucket, key);
  }
}

/** Creates the error about a foreign object. */
export function foreignObject(bucket: string, key: string): ImageError {
  return new ImageError(
    'provider-refused',
    `${bucket}/${key} was not created by nodepool-builder, and remains unchanged; move it, or rename the image under providers[].images`,
  );
}

function describe({ manifest }: StoredImage): DatedImage {
  return { imageId: manifest['image-id'], builtAt: Date.parse(manifest.built) || undefined };
}
