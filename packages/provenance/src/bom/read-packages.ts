import { basename, join } from 'node:path';
import type { ImageFormat, OperationOptions } from '@nodepool-builder/image-builder';
import { formatRow, signalOf, withTimeout } from '@nodepool-builder/image-builder/module-kit';
import type { Package } from '../types.ts';
import { FileSource, ReadAhead, reasonOf } from './byte-source.ts';
import type { FoundDatabases } from './databases/find-packages.ts';
import { readDibManifest } from './dib-manifest.ts';
import { packagesOfDisk } from './disk/disk-packages.ts';
import { withDisk } from './disk/nbd.ts';
import { withPackageUrls } from './package-url.ts';
import { packagesOfTar, packagesOfTgz } from './tar-packages.ts';

/** An image whose packages are read. */
export interface PackagedImage {
  readonly imageId: string;
  /** Directory of `<image-id>.d`. */
  readonly directory: string;
  readonly files: readonly { readonly format: ImageFormat; readonly path: string }[];
}

/** Packages of an image and where they were found, or the reason why they are unknown. */
export type FoundPackages =
  | { readonly packages: readonly Package[]; readonly source: string }
  | { readonly reason: string };

/** Time limit in seconds. */
const TIME_LIMIT = 120;

/**
 * Packages of an image: from the manifest that diskimage-builder wrote, or else from the database of dpkg, rpm or apk
 * in a file of the image. Nothing is mounted, no right of root is needed, and an image that cannot be read is no error.
 *
 * @throws the signal's reason
 */
export async function readPackages(
  image: PackagedImage,
  options: OperationOptions = {},
): Promise<FoundPackages> {
  return await withTimeout(
    TIME_LIMIT,
    signalOf(options),
    async (signal) => await read(image, signal),
    () => ({ reason: `the packages of image ${image.imageId} were not found within ${TIME_LIMIT} s` }),
  );
}

async function read(image: PackagedImage, signal: AbortSignal): Promise<FoundPackages> {
  const reasons: string[] = [];
  const manifests = join(image.directory, `${image.imageId}.d`, 'dib-manifests');
  const manifest = await attempt(() => readDibManifest(manifests, signal), signal);
  if (manifest.value !== undefined) {
    const { packages, source } = manifest.value;
    return { packages: await withPackageUrls(packages, {}), source };
  }
  if (manifest.reason !== undefined) reasons.push(`diskimage-builder's manifest: ${manifest.reason}`);
  for (const file of byPreference(image.files)) {
    const found = await attempt(() => packagesOf(file, signal), signal);
    if (found.value === undefined) {
      reasons.push(`${basename(file.path)}: ${found.reason}`);
      continue;
    }
    const { packages, databases, distribution } = found.value;
    return {
      packages: await withPackageUrls(packages, distribution),
      source: `${databases.join(' and ')} database in ${basename(file.path)}`,
    };
  }
  return { reason: reasons.join('; ') || 'the image has no file' };
}

type PackagedFile = PackagedImage['files'][number];

function byPreference(files: readonly PackagedFile[]): readonly PackagedFile[] {
  return files.toSorted((a, b) => rankOf(a) - rankOf(b));
}

/** A raw disk is read without another program, a compressed archive from its begin. */
function rankOf({ format }: PackagedFile): number {
  if (format === 'raw') return 0;
  if (formatRow(format).qemuDriver !== undefined) return 1;
  return format === 'tar' ? 2 : 3;
}

async function packagesOf(file: PackagedFile, signal: AbortSignal): Promise<FoundDatabases> {
  const { format, path } = file;
  if (format === 'tar') return await packagesOfTar(path, signal);
  if (format === 'tgz') return await packagesOfTgz(path, signal);
  if (format !== 'raw')
    return await withDisk(file, signal, async (disk) => await packagesOfDisk(new ReadAhead(disk)));
  const disk = await FileSource.open(path, signal);
  try {
    return await packagesOfDisk(new ReadAhead(disk));
  } finally {
    await disk.close();
  }
}

/** Result of work on untrusted data. @throws the signal's reason */
async function attempt<T>(
  work: () => Promise<T>,
  signal: AbortSignal,
): Promise<{ readonly value?: T; readonly reason?: string }> {
  try {
    return { value: await work() };
  } catch (error) {
    signal.throwIfAborted();
    return { reason: reasonOf(error) };
  }
}
