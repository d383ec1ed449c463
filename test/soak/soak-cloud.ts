import type { WantedUpload } from './nodepool-uploads.ts';

/** An image of the site, which is in `images-dir` before the builder starts. */
export interface SoakImage {
  readonly id: string;
  /** Path of the raw file. */
  readonly path: string;
  readonly size: number;
  readonly md5: string;
}

/** An image in a cloud, in any state. */
export interface StoredImage {
  readonly externalId: string;
  /** The image-id in its properties or tags. */
  readonly imageId: string;
  /** State of an incomplete image; undefined for a complete one. */
  readonly flaw?: string | undefined;
  /** Returns whether its bytes equal the file’s. */
  isSame(image: SoakImage): boolean | Promise<boolean>;
}

/** A cloud of a soak, with everything that the builder needs to upload to it. */
export interface SoakCloud {
  /** Entry of `providers`, without its images. */
  readonly entry: Readonly<Record<string, unknown>> & { readonly name: string };
  /** Environment variables of the builder. Default: none. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Lists all images, in any state. */
  images(): Promise<readonly StoredImage[]>;
  /** A sentence for each orphan: snapshots, disks, objects, sessions. Default: none. */
  orphans?(): Promise<readonly string[]>;
  /** Numbers of requests, and of injected faults. Default: not counted. */
  traffic?(): { readonly requests: number; readonly faults: number };
  close?(): Promise<void>;
}

/**
 * Compares a cloud with nodepool's uploads. Returns a sentence for each difference.
 *
 * @param log lines of the builder
 */
export async function compareCloud(
  cloud: SoakCloud,
  images: ReadonlyMap<string, SoakImage>,
  wanted: readonly WantedUpload[],
  log: readonly string[],
): Promise<string[]> {
  const { name } = cloud.entry;
  const [found, orphans = []] = await Promise.all([cloud.images(), cloud.orphans?.()]);
  const byExternalId = new Map(found.map((image) => [image.externalId, image]));
  const faults: string[] = [];
  const uploaded: (readonly [StoredImage, SoakImage])[] = [];
  for (const { imageId, provider, externalId = '' } of wanted) {
    if (provider !== name) continue;
    const stored = byExternalId.get(externalId);
    const image = images.get(imageId);
    byExternalId.delete(externalId);
    if (stored === undefined || image === undefined) {
      faults.push(`image ${imageId} is not there as ${externalId}`);
    } else if (stored.flaw !== undefined) {
      faults.push(`image ${imageId} is not complete: ${stored.flaw}`);
    } else if (stored.imageId !== imageId) {
      faults.push(`image ${imageId} has the image-id ${stored.imageId}`);
    } else {
      uploaded.push([stored, image]);
    }
  }
  for (const { imageId, externalId, flaw = 'complete' } of byExternalId.values()) {
    // The builder and gearmand were killed while they sent the result, so nobody can know whether the client got it.
    if (log.some((line) => line.includes(`image ${externalId} stays, because the client may know it`)))
      continue;
    faults.push(`image ${imageId} is there once more, ${flaw}: ${externalId}`);
  }
  faults.push(...orphans);
  // Comparing bytes takes long, so it comes last.
  for (const [stored, image] of faults.length === 0 ? uploaded : []) {
    if (!(await stored.isSame(image))) faults.push(`image ${image.id} has other bytes`);
  }
  return faults.map((fault) => `${name}: ${fault}`);
}
