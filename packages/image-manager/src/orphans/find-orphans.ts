import type { ImageProvider, Logger, ProviderImage } from '@nodepool-builder/image-builder';
import { errorMessage } from '@nodepool-builder/image-builder/internal';
import { isOwn } from '../ownership.ts';
import type { Upload } from '../records.ts';
import type { StoredState } from '../store/leadership.ts';

/** The images in one provider. */
export interface ProviderListing {
  readonly provider: string;
  readonly images: readonly ProviderImage[];
}

/** An image without a record. It is an orphan if it is ours. */
export type UnrecordedImage =
  | {
      readonly location: 'provider';
      readonly provider: string;
      readonly image: ProviderImage;
      /** True if the image carries the mark of this store. The manager never touches other images. */
      readonly isOurs: boolean;
    }
  | { readonly location: 'builder'; readonly imageId: string; readonly isOurs: boolean };

/** Records of a manager, with the mark of its images. */
export type OwnRecords = Pick<StoredState, 'owner' | 'builds' | 'uploads'>;

/** Finds images in a provider without a record: orphans, and images of others. */
export function unrecordedInProvider(
  { provider, images }: ProviderListing,
  { owner, uploads }: OwnRecords,
): readonly UnrecordedImage[] {
  return images
    .filter(({ uploadId }) => uploadId === undefined || !mayHaveImage(uploads.get(uploadId)))
    .map((image) => {
      const isOurs = image.uploadId !== undefined && isOwn(image.uploadId, owner);
      return { location: 'provider', provider, image, isOurs };
    });
}

/**
 * Finds images at builders without a record: orphans, and images of others.
 *
 * @param offered ids of the images that builders offer to delete
 */
export function unrecordedAtBuilders(
  offered: Iterable<string>,
  { owner, builds }: OwnRecords,
): readonly UnrecordedImage[] {
  return [...offered]
    .filter((imageId) => ['failed', 'deleted', undefined].includes(builds.get(imageId)?.state))
    .map((imageId) => {
      // Adopted images carry no mark, but their record shows that they are ours.
      const isOurs = isOwn(imageId, owner) || builds.has(imageId);
      return { location: 'builder', imageId, isOurs };
    });
}

/** Comparison of the uploads to a provider with the images that it lists. */
export interface UploadPresence {
  /** Listed for the first time, or listed again after being missing. */
  readonly appeared: readonly Upload[];
  /** Listed once before, but no longer. */
  readonly vanished: readonly Upload[];
  /** Never listed, although ready before the listing began, because manager and builder use different locations. */
  readonly invisible: readonly Upload[];
}

/**
 * Compares the uploads to a provider that were ready before its listing began with the listed images. An image belongs
 * to the upload whose id it carries, because where images are named after their builds, a later upload has the same
 * external id.
 */
export function compareUploads(
  uploads: Iterable<Upload>,
  { provider, images }: ProviderListing,
  begun: number,
): UploadPresence {
  const listed = new Map(images.map(({ externalId, uploadId }) => [externalId, uploadId]));
  const appeared: Upload[] = [];
  const vanished: Upload[] = [];
  const invisible: Upload[] = [];
  for (const upload of uploads) {
    const { id, state, externalId = '', seen, endedAt = begun } = upload;
    if (upload.provider !== provider || !(state === 'ready' || state === 'missing')) continue;
    if (endedAt >= begun) continue;
    const isListed = listed.has(externalId) && (listed.get(externalId) ?? id) === id;
    if (isListed && (state === 'missing' || !seen)) appeared.push(upload);
    else if (!isListed && state === 'ready') (seen ? vanished : invisible).push(upload);
  }
  return { appeared, vanished, invisible };
}

/** Returns whether the provider may have an image of this upload. */
function mayHaveImage(upload: Upload | undefined): boolean {
  return upload !== undefined && upload.state !== 'failed' && upload.state !== 'deleted';
}

/** Lists the images of a provider. Returns undefined if it is unknown, or if it fails, which is logged as a warning. */
export async function listProvider(
  name: string,
  { provider, logger }: { provider: (name: string) => ImageProvider | undefined; logger: Logger },
  signal: AbortSignal,
): Promise<ProviderListing | undefined> {
  try {
    const images = await provider(name)?.list({ signal });
    return images && { provider: name, images };
  } catch (error) {
    if (signal.aborted) throw error;
    logger.warn(`cannot list provider ${name}: ${errorMessage(error)}`);
    return undefined;
  }
}
