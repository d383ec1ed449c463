import { chmod, link, readdir, readlink, rename, rm, stat, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import {
  asImageError,
  type CandidateOptions,
  checksumsOf,
  formatRow,
  type ImageCandidate,
  ImageError,
  type ImageFilter,
  type ImageFormat,
  type ImageProvider,
  imageIdFault,
  type Leftover,
  limitMode,
  type OperationOptions,
  type ProviderImage,
  type UploadRequest,
  type UploadResult,
  unlessMissing,
} from '@nodepool-builder/image-builder';
import { toCandidate } from './candidate.ts';
import { copyImage } from './copy-image.ts';
import { listPartials } from './leftovers.ts';
import { type DirectoryManifest, manifestPath, readManifest } from './manifest.ts';
import {
  PUBLISHED,
  partialPath,
  removeStalePartials,
  replaceFile,
  syncDirectory,
  uploadOwner,
} from './partial-file.ts';

/** How a {@link DirectoryProvider} is set up. */
export interface DirectoryProviderOptions {
  /** `providers[].name`. */
  readonly name: string;
  /** Absolute path of the directory that serves: a libvirt pool, a web server's folder. It must exist. */
  readonly directory: string;
  /** The formats it takes, the best first. Default: qcow2. */
  readonly formats?: readonly ImageFormat[];
}

/**
 * A provider that serves images from a directory. An image is `<image-name>-<image-id>.<extension>` (which is
 * its external id), `<that>.json` beside it says what it is, and the symbolic link
 * `<image-name>-latest.<extension>` names the one that was built last.
 *
 * Readers never see half a file: it is written under a hidden name (as a reflink where the file system has
 * them, else a sparse copy), flushed, and renamed. Files without our manifest are never touched.
 */
export class DirectoryProvider implements ImageProvider {
  readonly name: string;
  readonly formats: readonly ImageFormat[];
  readonly #directory: string;
  /** Links are set one after the other: two uploads that end together must leave the newer one as `latest`. */
  #linking: Promise<void> = Promise.resolve();

  constructor(options: DirectoryProviderOptions) {
    this.name = options.name;
    this.formats = options.formats ?? ['qcow2'];
    this.#directory = options.directory;
  }

  async upload(request: UploadRequest, options: OperationOptions = {}): Promise<UploadResult> {
    const { imageId, imageName, file, shared = false } = request;
    const externalId = this.#fileName(imageName, imageId, file.format);
    const target = join(this.#directory, externalId);
    return await this.#explain(`upload of ${externalId}`, async () => {
      options.signal?.throwIfAborted();
      await removeStalePartials(this.#directory);
      await this.#tighten();
      const there = await readManifest(target);
      refuseForeign(target, there, request);
      if (!shared || there === undefined || (await unlessMissing(stat(target))) === undefined)
        await this.#bring(request, target, options);
      await this.#linkLatest(imageName, file.format);
      await syncDirectory(this.#directory);
      return { externalId };
    });
  }

  /** Half an upload needs no care here: it lies under a name of its own, which the next upload removes. */
  async discard(uploadId: string, options: OperationOptions = {}): Promise<void> {
    const manifests = await this.#explain(`removal of upload ${uploadId}`, () => this.#manifests());
    const left = manifests.filter(([, manifest]) => manifest['upload-id'] === uploadId);
    for (const [externalId] of left) await this.delete(externalId, options);
  }

  async delete(externalId: string, options: OperationOptions = {}): Promise<void> {
    const fault = imageIdFault(externalId);
    if (fault !== undefined) {
      throw new ImageError(
        'image-not-found',
        `external-id ${JSON.stringify(externalId)} ${fault}; list shows the ids there are`,
      );
    }
    const target = join(this.#directory, externalId);
    await this.#explain(`deletion of ${externalId}`, async () => {
      options.signal?.throwIfAborted();
      const manifest = await readManifest(target);
      if (manifest === undefined) {
        if ((await unlessMissing(stat(target))) === undefined) return;
        throw new ImageError(
          'provider-refused',
          `${target} has no manifest of ours beside it, so it is not ours to delete; remove it by hand`,
        );
      }
      // First the link moves on, then the image goes, and its manifest last: a crash in between leaves
      // nothing that dangles, and a second call finishes the work.
      await this.#linkLatest(manifest['image-name'], manifest.format, externalId);
      await rm(target, { force: true });
      await rm(manifestPath(target), { force: true });
      await this.#linkLatest(manifest['image-name'], manifest.format); // another process may have moved it back
      await syncDirectory(this.#directory);
    });
  }

  async list(options: OperationOptions = {}): Promise<readonly ProviderImage[]> {
    return await this.#explain('list of images', async () => {
      options.signal?.throwIfAborted();
      const images = await this.#manifests();
      return images.map(([externalId, manifest]) => ({
        externalId,
        ...(manifest['upload-id'] !== undefined && { uploadId: manifest['upload-id'] }),
        imageId: manifest['image-id'],
        imageName: manifest['image-name'],
        format: manifest.format,
        size: manifest.size,
        uploadedAt: new Date(manifest.uploaded),
      }));
    });
  }

  async candidates(_filter: ImageFilter, options: CandidateOptions = {}): Promise<readonly ImageCandidate[]> {
    return await this.#explain('list of images', async () => {
      options.signal?.throwIfAborted();
      return (await this.#manifests()).map(([externalId, manifest]) => toCandidate(externalId, manifest));
    });
  }

  async leftovers(options: OperationOptions = {}): Promise<readonly Leftover[]> {
    return await this.#explain('list of leftovers', async () => {
      options.signal?.throwIfAborted();
      return await listPartials(this.#directory);
    });
  }

  #fileName(imageName: string, imageId: string, format: ImageFormat): string {
    const name = `${imageName}-${imageId}.${formatRow(format).extension}`;
    const fault = imageIdFault(name);
    if (fault === undefined) return name;
    throw new ImageError(
      'provider-refused',
      `provider ${this.name} cannot name a file ${JSON.stringify(name.slice(0, 80))}: it ${fault}; rename the image under providers[].images`,
    );
  }

  /**
   * Brings the file and its manifest in place. Of several processes at a shared upload, the first one's file stays, so
   * that whatever manifest is there describes it. Until there is one, the file has its hidden name, too: whoever looks
   * for leftovers finds it by that.
   */
  async #bring(request: UploadRequest, target: string, options: OperationOptions): Promise<void> {
    const { uploadId, imageId, imageName, file, shared = false, metadata = {} } = request;
    const owner = shared ? uploadOwner(uploadId) : undefined;
    const { mtime } = await stat(file.path);
    const partial = partialPath(this.#directory, owner);
    try {
      const copied = await copyImage(file, partial, options);
      await chmod(partial, PUBLISHED); // whatever the umask is, or the mode of the file
      options.signal?.throwIfAborted();
      const isFirst = shared
        ? await linkUnlessThere(partial, target)
        : await rename(partial, target).then(() => true);
      const manifest: DirectoryManifest = {
        'image-id': imageId,
        'image-name': imageName,
        'upload-id': uploadId,
        format: file.format,
        size: (await stat(target)).size,
        ...(isFirst ? copied : await checksumsOf(target, options)),
        built: (request.builtAt ?? mtime).toISOString(),
        uploaded: new Date().toISOString(),
        metadata,
      };
      await replaceFile(manifestPath(target), `${JSON.stringify(manifest, null, 2)}\n`, owner);
    } finally {
      await rm(partial, { force: true });
    }
  }

  /** Points `<image-name>-latest` at the image that was built last, `without` left out; removes it if there is none. */
  async #linkLatest(imageName: string, format: ImageFormat, without?: string): Promise<void> {
    const point = async (): Promise<void> => {
      const latest = join(this.#directory, `${imageName}-latest.${formatRow(format).extension}`);
      // Once more after each change: another process may have made one, too, and not have seen this one's image.
      for (;;) {
        const candidates = (await this.#manifests())
          .filter(([id, m]) => id !== without && m['image-name'] === imageName && m.format === format)
          .toSorted(([, a], [, b]) => b.built.localeCompare(a.built));
        const newest = candidates[0]?.[0];
        if (newest === (await readlink(latest).catch(() => undefined))) return;
        if (newest === undefined) {
          await rm(latest, { force: true });
        } else {
          const partial = partialPath(this.#directory);
          await symlink(newest, partial);
          await rename(partial, latest);
        }
      }
    };
    const turn = this.#linking.then(point);
    this.#linking = turn.catch(() => {}); // the failure is the caller's; the next one starts afresh
    await turn;
  }

  /** What is ours and whole, by external id. */
  async #manifests(): Promise<[externalId: string, manifest: DirectoryManifest][]> {
    const names = new Set(await readdir(this.#directory));
    const found: [string, DirectoryManifest][] = [];
    for (const name of names) {
      if (!names.has(manifestPath(name))) continue;
      const manifest = await readManifest(join(this.#directory, name));
      if (manifest !== undefined) found.push([name, manifest]);
    }
    return found;
  }

  /** Takes the rights to write that an earlier release, with a umask of 0, gave to everybody. */
  async #tighten(): Promise<void> {
    for (const [externalId] of await this.#manifests()) {
      for (const path of [externalId, manifestPath(externalId)]) {
        // One of another user is that user's to change.
        await limitMode(join(this.#directory, path), PUBLISHED).catch(() => false);
      }
    }
  }

  /** Gives what the file system says the form that names the provider and the remedy. */
  async #explain<T>(action: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw asImageError(error, `provider ${this.name}: ${action} in ${this.#directory}`);
    }
  }
}

/** `a-b` of image `c` and `a` of image `b-c` would share a file name; a shared upload replaces nothing at all. */
function refuseForeign(
  target: string,
  there: DirectoryManifest | undefined,
  { uploadId, imageId, imageName, shared = false }: UploadRequest,
): void {
  if (there === undefined) return;
  const isSame = there['image-id'] === imageId && there['image-name'] === imageName;
  if (isSame && (!shared || there['upload-id'] === uploadId)) return;
  throw new ImageError(
    'provider-refused',
    `${target} is image ${there['image-id']} of ${there['image-name']} already; delete that one or use another image-id`,
  );
}

/** Gives a file one more name, unless there is a file of that name; returns whether it did. */
async function linkUnlessThere(path: string, name: string): Promise<boolean> {
  try {
    await link(path, name);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}
