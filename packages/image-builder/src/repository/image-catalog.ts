import { rm, stat } from 'node:fs/promises';
import { FORMAT_NAMES } from '../formats.ts';
import type { Manifest, ManifestFile } from '../manifest.ts';
import type { Image, Logger } from '../types.ts';
import { withdraw } from './deletion.ts';
import { DirectoryObserver } from './directory-observer.ts';
import { parseImageFileName } from './image-file-name.ts';
import { isSameImage, readImage } from './image-reader.ts';
import { imageFileName, type Layout } from './layout.ts';
import { Mutex } from './mutex.ts';
import { publish } from './publication.ts';
import { manifestIds } from './recovery.ts';
import type { Staging } from './staging.ts';

/** Concurrently read manifests: each takes a file descriptor. */
const READ_AT_ONCE = 64;

/** Receives the changes of an {@link ImageCatalog}. */
export interface ImageCatalogListener {
  added(image: Image): void;
  removed(image: Image): void;
  changed(image: Image): void;
  /** The directory was missing or has been replaced. */
  returned(): Promise<void>;
}

/** All images in the directory, including those that other programs put there. */
export class ImageCatalog {
  readonly images: Map<string, Image> = new Map();
  readonly #layout: Layout;
  readonly #listener: ImageCatalogListener;
  readonly #logger: Logger | undefined;
  readonly #observer: DirectoryObserver;
  /** Held during each change and each scan of the directory, so that a scan never sees a change half-done. */
  readonly #mutex = new Mutex();

  constructor(layout: Layout, listener: ImageCatalogListener, logger: Logger | undefined) {
    this.#layout = layout;
    this.#listener = listener;
    this.#logger = logger;
    this.#observer = new DirectoryObserver({
      directory: layout.root,
      mutex: this.#mutex,
      onChanges: (names) => this.#refresh(names),
      onReturn: () => listener.returned(),
      logger,
    });
  }

  async start(): Promise<void> {
    await this.#observer.start();
    const known = this.#knownIds();
    for (const imageId of await manifestIds(this.#layout)) {
      if (!known.has(imageId)) await rm(this.#layout.manifest(imageId), { force: true });
    }
  }

  /** Moves new files of an image into the directory. */
  async publish(staging: Staging, manifest: Manifest, fresh: readonly ManifestFile[]): Promise<Image> {
    const imageId = manifest['image-id'];
    return await this.#mutex.run(async () => {
      await publish(this.#layout, staging, manifest, fresh);
      for (const { format } of fresh) {
        const state = await stat(this.#layout.image(imageId, format));
        this.#observer.files.add(imageFileName(imageId, format), state);
      }
      await this.#refreshImage(imageId);
      const image = this.images.get(imageId);
      if (image === undefined) throw new Error(`image ${imageId} is missing after its publication`);
      return image;
    });
  }

  /** Moves all files of an image out of the directory. */
  async withdraw(imageId: string): Promise<void> {
    const names = FORMAT_NAMES.map((format) => imageFileName(imageId, format));
    await this.#mutex.run(async () => {
      try {
        await withdraw(this.#layout, imageId);
        for (const name of names) this.#observer.files.delete(name);
      } finally {
        await this.#observer.files.look(new Map(names.map((name) => [name, 'moved'])));
        await this.#refreshImage(imageId);
      }
    });
  }

  async close(): Promise<void> {
    this.#observer.close();
    await this.#mutex.idle();
  }

  async #refresh(names: readonly string[]): Promise<void> {
    const ids = [...new Set(names.flatMap((name) => parseImageFileName(name)?.imageId ?? []))];
    for (let start = 0; start < ids.length; start += READ_AT_ONCE) {
      await Promise.all(ids.slice(start, start + READ_AT_ONCE).map((imageId) => this.#refreshImage(imageId)));
    }
  }

  async #refreshImage(imageId: string): Promise<void> {
    const before = this.images.get(imageId);
    const image = await readImage(imageId, this.#layout, this.#observer.files, this.#logger);
    if (image !== undefined) {
      this.images.set(imageId, image);
      if (before === undefined) this.#listener.added(image);
      else if (!isSameImage(before, image)) this.#listener.changed(image);
    } else if (before !== undefined) {
      this.images.delete(imageId);
      this.#listener.removed(before);
      // A file that is being rewritten keeps the manifest.
      if (!this.#knownIds().has(imageId)) await rm(this.#layout.manifest(imageId), { force: true });
    }
  }

  /** Ids of all files, including incomplete ones. */
  #knownIds(): Set<string | undefined> {
    return new Set(this.#observer.files.names().map((name) => parseImageFileName(name)?.imageId));
  }
}
