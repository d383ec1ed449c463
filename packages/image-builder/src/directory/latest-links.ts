import { readlink, rename, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { type DatedImage, newestBuildFirst } from '../build-order.ts';
import { formatRow, type ImageFormat } from '../formats.ts';
import { Mutex } from '../repository/mutex.ts';
import { unlessMissing } from '../system-error.ts';
import { type DirectoryEntry, readWholeImages } from './manifest.ts';
import { partialPath, stateOf } from './partial-file.ts';
import { refuseExisting } from './place-image.ts';

/** Images of one name and format, and the upload that changes their link. */
export interface LinkChange {
  readonly imageName: string;
  readonly format: ImageFormat;
  /** Upload that owns the temporary file. */
  readonly uploadId: string;
  /** External id of an image that is about to be deleted. */
  readonly without?: string;
}

/** The links `<image-name>-latest.<extension>` in a directory. */
export class LatestLinks {
  readonly #directory: string;
  readonly #warn: (message: string) => void;
  /** Sets links one after the other, because two uploads that end together must leave the newer one as `latest`. */
  readonly #mutex = new Mutex();
  /** External ids of images for which a warning was logged. */
  readonly #warned = new Set<string>();

  /** @param warn called for each image with a future build time */
  constructor(directory: string, warn: (message: string) => void) {
    this.#directory = directory;
    this.#warn = warn;
  }

  /** @throws ImageError `provider-refused` if the link would replace a file, or a link that is not ours */
  async refuseForeign(imageName: string, format: ImageFormat): Promise<void> {
    const path = this.#path(imageName, format);
    if (!(await isOurs(path))) await refuseExisting([path]);
  }

  /** Points a link to the image that was built last, or removes the link. Keeps a file that is not such a link. */
  async update(change: LinkChange): Promise<void> {
    await this.#mutex.run(() => this.#point(change));
  }

  #path(imageName: string, format: ImageFormat): string {
    return join(this.#directory, `${imageName}-latest.${formatRow(format).extension}`);
  }

  async #point({ imageName, format, uploadId, without }: LinkChange): Promise<void> {
    const latest = this.#path(imageName, format);
    // Repeated after each change, because another process may have changed the link without seeing this image.
    for (;;) {
      const images = (await readWholeImages(this.#directory)).filter(
        ({ externalId, manifest }) =>
          externalId !== without && manifest['image-name'] === imageName && manifest.format === format,
      );
      const newest = this.#newestFirst(images)[0]?.externalId;
      if (!(await isOurs(latest)) || newest === (await unlessMissing(readlink(latest)))) return;
      if (newest === undefined) {
        await rm(latest, { force: true });
      } else {
        const partial = partialPath(this.#directory, uploadId);
        await symlink(newest, partial);
        await rename(partial, latest);
      }
    }
  }

  #newestFirst(images: readonly DirectoryEntry[]): readonly DirectoryEntry[] {
    const now = Date.now();
    for (const { externalId, manifest } of images) {
      if (!(Date.parse(manifest.built) > now) || this.#warned.has(externalId)) continue;
      this.#warned.add(externalId);
      this.#warn(
        `${externalId} has a build time in the future, ${manifest.built}: it is ordered by its number, or else counts as the oldest; correct its manifest, or delete it`,
      );
    }
    return newestBuildFirst(images, describe, now);
  }
}

/** Returns whether a path is free, or is a link to a file in the same directory. */
async function isOurs(path: string): Promise<boolean> {
  const state = await stateOf(path);
  if (state === undefined) return true;
  return state.isSymbolicLink() && !((await unlessMissing(readlink(path))) ?? '').includes('/');
}

function describe({ manifest }: DirectoryEntry): DatedImage {
  return { imageId: manifest['image-id'], builtAt: Date.parse(manifest.built) || undefined };
}
