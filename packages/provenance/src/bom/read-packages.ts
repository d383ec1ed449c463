import { join } from 'node:path';
import type { ImageFormat, OperationOptions } from '@nodepool-builder/image-builder';
import { signalOf, withTimeout } from '@nodepool-builder/image-builder/module-kit';
import type { Package } from '../types.ts';
import { readDibManifest } from './dib-manifest.ts';
import { withPackageUrls } from './package-url.ts';

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
  return { reason: reasons.join('; ') };
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
    const reason = error instanceof Error ? error.message : String(error);
    return { reason };
  }
}
