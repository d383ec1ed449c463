import { type FSWatcher, watch } from 'node:fs';
import { readdir, rm, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { UNFINISHED } from '../durable.ts';
import { FORMAT_NAMES } from '../formats.ts';
import { imageIdError } from '../image-id.ts';
import { type Manifest, type ManifestFile, readManifest } from '../manifest.ts';
import { inSlices } from '../slices.ts';
import type { Image, Logger } from '../types.ts';
import { withdraw } from './deletion.ts';
import { readImage } from './image-reader.ts';
import { imageFileName, type Layout, parseImageFileName } from './layout.ts';
import { Mutex } from './mutex.ts';
import { publish } from './publication.ts';
import { type Occasion, SettledFiles } from './settled-files.ts';
import type { Staging } from './staging.ts';
import { fileKey } from './writers.ts';

/** Milliseconds between two full scans, which find changes without an inotify event (NFS, queue overflow). */
const RESCAN_INTERVAL = 60_000;

/** Milliseconds between two scans while the directory cannot be watched or does not exist. */
const UNWATCHED_INTERVAL = 1_000;

/** Receives the changes of an {@link ImageCatalog}. */
export interface ImageCatalogListener {
  onImage(event: 'added' | 'removed', image: Image): void;
  /** A missing directory has returned, or the directory has been replaced. */
  onReturn(): Promise<void>;
}

/** All images in the directory, including those that other programs put there. It follows every change. */
export class ImageCatalog {
  readonly images: Map<string, Image> = new Map();
  readonly #layout: Layout;
  readonly #listener: ImageCatalogListener;
  readonly #logger: Logger | undefined;
  readonly #files: SettledFiles;
  /** Held during each change and each scan of the directory, so that a scan never sees an unfinished change. */
  readonly #mutex = new Mutex();
  readonly #refused = new Set<string>();
  #pending = new Map<string, Occasion>();
  #watcher: FSWatcher | undefined;
  #identity: string | undefined;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(layout: Layout, listener: ImageCatalogListener, logger?: Logger) {
    this.#layout = layout;
    this.#listener = listener;
    this.#logger = logger;
    this.#files = new SettledFiles(layout.root, {
      onDue: (names) => {
        for (const name of names) this.#note(name, 'again');
      },
      onRefused: (name, reason) => this.#refuse(name, reason),
    });
  }

  /** Begins to watch the directory, and reports all present images. */
  async start(): Promise<void> {
    this.#identity = fileKey(await stat(this.#layout.root));
    this.#watch();
    await this.#mutex.run(() => this.#scan('moved'));
    this.#scheduleRescan();
    await inSlices(await readdir(this.#layout.manifests), (name) => {
      const isOrphan = name.endsWith('.json') && !this.#isKnown(basename(name, '.json'));
      if (!isOrphan && !name.endsWith(UNFINISHED)) return undefined;
      return rm(join(this.#layout.manifests, name), { force: true });
    });
  }

  async publish(staging: Staging, manifest: Manifest): Promise<Image> {
    return await this.#mutex.run(() => this.#publish(staging, manifest, manifest.files));
  }

  /** Publishes another file of an image. Returns undefined if the image is gone. */
  async addFile(staging: Staging, imageId: string, file: ManifestFile): Promise<Image | undefined> {
    return await this.#mutex.run(async () => {
      if (!this.images.has(imageId)) return undefined;
      const known = await readManifest(this.#layout.manifest(imageId), imageId, this.#logger);
      const others = known?.files.filter(({ format }) => format !== file.format) ?? [];
      const manifest: Manifest = { version: 1, 'image-id': imageId, ...known, files: [...others, file] };
      return await this.#publish(staging, manifest, [file]);
    });
  }

  async #publish(staging: Staging, manifest: Manifest, fresh: readonly ManifestFile[]): Promise<Image> {
    const imageId = manifest['image-id'];
    await publish(this.#layout, staging, manifest, fresh);
    for (const { format } of fresh) {
      this.#files.add(imageFileName(imageId, format), await stat(this.#layout.image(imageId, format)));
    }
    await this.#refreshImage(imageId);
    const image = this.images.get(imageId);
    if (image === undefined) throw new Error(`image ${imageId} is missing after its publication`);
    return image;
  }

  async withdraw(imageId: string): Promise<void> {
    const names = fileNames(imageId);
    await this.#mutex.run(async () => {
      try {
        await withdraw(this.#layout, imageId);
        for (const name of names) this.#files.delete(name);
      } finally {
        await this.#files.check(names, () => 'moved');
        await this.#refreshImage(imageId);
      }
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#watcher?.close();
    this.#files.close();
    await this.#mutex.idle();
  }

  #watch(): void {
    const { root } = this.#layout;
    const failed = (error: unknown): void => {
      this.#logger?.warn(`cannot watch "${root}", scanning it every second: ${String(error)}`);
      this.#watcher?.close();
      this.#watcher = undefined;
    };
    try {
      this.#watcher = watch(root, (event, name) => {
        if (name === null || name === basename(root))
          void this.#rescan(); // the directory itself changed
        else if (this.#isImageFile(name)) this.#note(name, event === 'change' ? 'changed' : 'moved');
      });
      this.#watcher.on('error', failed);
    } catch (error) {
      failed(error);
    }
  }

  /** Schedules a check of a file, together with all others that change until the mutex is free. */
  #note(name: string, occasion: Occasion): void {
    if (this.#closed) return;
    const first = this.#pending.size === 0;
    this.#pending.set(name, this.#pending.get(name) === 'changed' ? 'changed' : occasion);
    if (first) this.#mutex.run(() => this.#checkPending()).catch((error: unknown) => this.#report(error));
  }

  async #checkPending(): Promise<void> {
    const occasions = this.#pending;
    this.#pending = new Map();
    if (this.#closed) return;
    await this.#refresh(await this.#files.check(occasions.keys(), (name) => occasions.get(name) ?? 'again'));
  }

  async #scan(occasion: Occasion): Promise<void> {
    const names = this.#files.names();
    await inSlices(await readdir(this.#layout.root), (name) => {
      if (!this.#files.has(name) && this.#isImageFile(name)) names.push(name);
    });
    await this.#refresh(await this.#files.check(names, () => occasion));
  }

  #scheduleRescan(): void {
    clearTimeout(this.#timer);
    if (this.#closed) return;
    const interval = this.#watcher === undefined ? UNWATCHED_INTERVAL : RESCAN_INTERVAL;
    this.#timer = setTimeout(() => void this.#rescan(), interval).unref();
  }

  /** Scans the whole directory, and schedules the next scan. */
  async #rescan(): Promise<void> {
    try {
      await this.#mutex.run(async () => {
        if (this.#closed) return;
        await this.#checkDirectory();
        if (this.#identity !== undefined) await this.#scan('found');
      });
    } catch (error) {
      this.#report(error);
    }
    this.#scheduleRescan();
  }

  /** Detects that the directory disappeared, and watches it again when it returns. */
  async #checkDirectory(): Promise<void> {
    const { root } = this.#layout;
    const identity = await stat(root).then(fileKey, () => undefined);
    if (identity !== this.#identity) {
      const before = this.#identity;
      this.#identity = undefined;
      this.#watcher?.close();
      this.#watcher = undefined;
      if (before !== undefined) {
        this.#logger?.error(`"${root}" has disappeared with all its images; restore it`);
        await this.#refresh(this.#files.names().filter((name) => this.#files.delete(name)));
      }
      if (identity === undefined) return;
      await this.#listener.onReturn();
      this.#identity = identity;
      this.#logger?.info(`"${root}" is back`);
    }
    if (this.#watcher === undefined) this.#watch();
  }

  async #refresh(names: readonly string[]): Promise<void> {
    const ids = new Set<string>();
    await inSlices(names, (name) => {
      const imageId = parseImageFileName(name)?.imageId;
      if (imageId !== undefined) ids.add(imageId);
    });
    await inSlices(ids, (imageId) => this.#refreshImage(imageId));
  }

  async #refreshImage(imageId: string): Promise<void> {
    const before = this.images.get(imageId);
    const image = await readImage(imageId, this.#layout, this.#files, this.#logger);
    if (image !== undefined) {
      this.images.set(imageId, image);
      if (before === undefined) this.#listener.onImage('added', image);
    } else if (before !== undefined) {
      this.images.delete(imageId);
      this.#listener.onImage('removed', before);
      // A file that is being rewritten keeps its manifest.
      if (!this.#isKnown(imageId)) await rm(this.#layout.manifest(imageId), { force: true });
    }
  }

  /** Returns whether an image has a file, complete or not. */
  #isKnown(imageId: string): boolean {
    return this.images.has(imageId) || fileNames(imageId).some((name) => this.#files.has(name));
  }

  /** Returns whether a file may be an image. Logs once why a file with such a name is not an image. */
  #isImageFile(name: string): boolean {
    const parsed = parseImageFileName(name);
    const error = parsed && imageIdError(parsed.imageId);
    if (error !== undefined) this.#refuse(name, `its id ${error}; rename it`);
    return parsed !== undefined && error === undefined;
  }

  #refuse(name: string, reason: string): void {
    if (this.#refused.has(name)) return;
    this.#refused.add(name);
    this.#logger?.warn(`${JSON.stringify(name)} is not offered as an image: ${reason}`);
  }

  #report(error: unknown): void {
    this.#logger?.error(`cannot read "${this.#layout.root}": ${String(error)}`);
  }
}

/** Names of an image's files in all formats. */
function fileNames(imageId: string): string[] {
  return FORMAT_NAMES.map((format) => imageFileName(imageId, format));
}
