import { readlink, rename, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { byBuild, type DatedImage } from '../build-order.ts';
import { formatRow, type ImageFormat } from '../formats.ts';
import { unlessMissing } from '../system-error.ts';
import { type Entry, readWholeImages } from './entries.ts';
import { isOurLink } from './foreign.ts';
import { partialPath } from './partial-file.ts';

/** Settings of {@link LatestLinks}. */
export interface LatestLinksOptions {
  readonly directory: string;
  /** Gets a warning about each image with a build time in the future. */
  readonly warn: (message: string) => void;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/** Images of one name and format, and the upload that changes their link. */
export interface LinkChange {
  readonly imageName: string;
  readonly format: ImageFormat;
  /** Owns the temporary file. */
  readonly uploadId: string;
  /** External id of an image that is about to be deleted. */
  readonly without?: string;
}

/** The links `<image-name>-latest.<extension>`. */
export class LatestLinks {
  readonly #options: LatestLinksOptions;
  /** Links are set one after the other: two uploads that end together must leave the newer one as `latest`. */
  #linking: Promise<void> = Promise.resolve();
  /** External ids of images with a logged warning. */
  readonly #warned = new Set<string>();

  constructor(options: LatestLinksOptions) {
    this.#options = options;
  }

  path(imageName: string, format: ImageFormat): string {
    return join(this.#options.directory, `${imageName}-latest.${formatRow(format).extension}`);
  }

  /** Points a link at the image that was built last; removes it if there is none. A file that is no link of ours stays. */
  async update(change: LinkChange): Promise<void> {
    const turn = this.#linking.then(() => this.#point(change));
    this.#linking = turn.catch(() => {}); // the caller gets the failure; the next update tries again
    await turn;
  }

  async #point({ imageName, format, uploadId, without }: LinkChange): Promise<void> {
    const { directory } = this.#options;
    const latest = this.path(imageName, format);
    // Repeated after each change: another process may have changed the link without seeing this image.
    for (;;) {
      const images = (await readWholeImages(directory)).filter(
        ({ externalId, manifest }) =>
          externalId !== without && manifest['image-name'] === imageName && manifest.format === format,
      );
      const newest = this.#newestFirst(images)[0]?.externalId;
      if (!(await isOurLink(latest)) || newest === (await unlessMissing(readlink(latest)))) return;
      if (newest === undefined) {
        await rm(latest, { force: true });
      } else {
        const partial = partialPath(directory, uploadId);
        await symlink(newest, partial);
        await rename(partial, latest);
      }
    }
  }

  #newestFirst(images: readonly Entry[]): readonly Entry[] {
    const { now, warn } = this.#options;
    const time = now();
    for (const { externalId, manifest } of images) {
      if (!(Date.parse(manifest.built) > time) || this.#warned.has(externalId)) continue;
      this.#warned.add(externalId);
      warn(
        `${externalId} has a build time in the future, ${manifest.built}: its number decides its place, or else it counts as the oldest; correct its manifest, or delete it`,
      );
    }
    return images.toSorted(byBuild(images, describe, time));
  }
}

function describe({ manifest }: Entry): DatedImage {
  return { imageId: manifest['image-id'], builtAt: Date.parse(manifest.built) || undefined };
}
