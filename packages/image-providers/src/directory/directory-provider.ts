import { constants, type Stats } from 'node:fs';
import { copyFile, open, readdir, readlink, rename, rm, stat, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import {
  asImageError,
  type CandidateOptions,
  type Checksums,
  formatRow,
  type ImageCandidate,
  ImageError,
  type ImageFile,
  type ImageFilter,
  type ImageFormat,
  type ImageProvider,
  imageIdFault,
  type OperationOptions,
  type ProviderImage,
  type UploadRequest,
  type UploadResult,
} from '@nodepool-builder/image-builder';
import { toCandidate } from './candidate.ts';
import { type DirectoryManifest, manifestPath, readManifest } from './manifest.ts';
import { partialPath, removeStalePartials, replaceFile, syncDirectory } from './partial-file.ts';
import { sparseCopy } from './sparse-copy.ts';

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
    const { uploadId, imageId, imageName, file, metadata = {} } = request;
    const externalId = this.#fileName(imageName, imageId, file.format);
    const target = join(this.#directory, externalId);
    return await this.#explain(`upload of ${externalId}`, async () => {
      options.signal?.throwIfAborted();
      await removeStalePartials(this.#directory);
      await this.#refuseForeign(target, imageName, imageId);
      const source = await stat(file.path);
      const { builtAt = source.mtime } = request;
      const checksums = await this.#place(file, target, options);
      const manifest: DirectoryManifest = {
        'image-id': imageId,
        'image-name': imageName,
        'upload-id': uploadId,
        format: file.format,
        size: source.size,
        ...checksums,
        built: builtAt.toISOString(),
        uploaded: new Date().toISOString(),
        metadata,
      };
      await replaceFile(manifestPath(target), `${JSON.stringify(manifest, null, 2)}\n`);
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
        if (!(await exists(target))) return;
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

  #fileName(imageName: string, imageId: string, format: ImageFormat): string {
    const name = `${imageName}-${imageId}.${formatRow(format).extension}`;
    const fault = imageIdFault(name);
    if (fault === undefined) return name;
    throw new ImageError(
      'provider-refused',
      `provider ${this.name} cannot name a file ${JSON.stringify(name.slice(0, 80))}: it ${fault}; rename the image under providers[].images`,
    );
  }

  /** `a-b` of image `c` and `a` of image `b-c` would share a file name. */
  async #refuseForeign(target: string, imageName: string, imageId: string): Promise<void> {
    const there = await readManifest(target);
    if (there === undefined || (there['image-id'] === imageId && there['image-name'] === imageName)) return;
    throw new ImageError(
      'provider-refused',
      `${target} is image ${there['image-id']} of ${there['image-name']} already; delete that one or use another image-id`,
    );
  }

  /** Brings the file in place and returns its digests. */
  async #place(file: ImageFile, target: string, options: OperationOptions): Promise<Checksums> {
    const partial = partialPath(this.#directory);
    try {
      const reflinked = file.checksums !== undefined && (await reflink(file.path, partial));
      const checksums = reflinked ? file.checksums : await sparseCopy(file.path, partial, options);
      if (file.checksums !== undefined && checksums?.sha256 !== file.checksums.sha256) {
        throw new ImageError(
          'provider-refused',
          `${file.path} is not what the builder made: its sha256 is ${checksums?.sha256}, not ${file.checksums.sha256}; build the image again`,
        );
      }
      options.signal?.throwIfAborted();
      await rename(partial, target);
      return checksums;
    } finally {
      await rm(partial, { force: true });
    }
  }

  /** Points `<image-name>-latest` at the image that was built last, `without` left out; removes it if there is none. */
  async #linkLatest(imageName: string, format: ImageFormat, without?: string): Promise<void> {
    const link = async (): Promise<void> => {
      const latest = join(this.#directory, `${imageName}-latest.${formatRow(format).extension}`);
      const candidates = (await this.#manifests())
        .filter(([id, m]) => id !== without && m['image-name'] === imageName && m.format === format)
        .toSorted(([, a], [, b]) => b.built.localeCompare(a.built));
      const newest = candidates[0]?.[0];
      if (newest === undefined) {
        await rm(latest, { force: true });
      } else if (newest !== (await readlink(latest).catch(() => undefined))) {
        const partial = partialPath(this.#directory);
        await symlink(newest, partial);
        await rename(partial, latest);
      }
    };
    const turn = this.#linking.then(link);
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

  /** Gives what the file system says the form that names the provider and the remedy. */
  async #explain<T>(action: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw asImageError(error, `provider ${this.name}: ${action} in ${this.#directory}`);
    }
  }
}

/** Shares the blocks of a file, where the file system can; false where it cannot. */
async function reflink(source: string, target: string): Promise<boolean> {
  try {
    await copyFile(source, target, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE_FORCE);
  } catch (error) {
    if (NO_REFLINK.has((error as NodeJS.ErrnoException).code ?? '')) return false;
    throw error;
  }
  const file = await open(target, 'r');
  try {
    await file.sync();
  } finally {
    await file.close();
  }
  return true;
}

const NO_REFLINK = new Set(['ENOTSUP', 'EOPNOTSUPP', 'EXDEV', 'EINVAL', 'ENOTTY', 'ENOSYS']);

async function exists(path: string): Promise<boolean> {
  const found: Stats | undefined = await stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  return found !== undefined;
}
