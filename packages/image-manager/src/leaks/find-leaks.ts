import type { ProviderImage } from '@nodepool-builder/image-builder';
import { isOwn } from '../ownership.ts';
import type { ManagerState, Upload } from '../records.ts';

/** What a provider lists. */
export interface ProviderListing {
  readonly provider: string;
  readonly images: readonly ProviderImage[];
}

/** An image that no record stands for. */
export type StrayImage =
  | {
      readonly place: 'provider';
      readonly provider: string;
      readonly image: ProviderImage;
      /** Whether it carries our mark: what does not is never touched. */
      readonly isOurs: boolean;
    }
  | { readonly place: 'builder'; readonly imageId: string; readonly isOurs: boolean };

/** What findLeaks looks at. */
export interface Sight {
  readonly owner: string;
  readonly state: ManagerState;
  readonly listings: readonly ProviderListing[];
  /** Ids of the images that builders offer to delete. */
  readonly offered: Iterable<string>;
}

/** Images in providers and at builders that no record stands for, ours and others'. */
export function findStrayImages({ owner, state, listings, offered }: Sight): readonly StrayImage[] {
  const atProviders = listings.flatMap(({ provider, images }) =>
    images
      .filter(({ uploadId }) => uploadId === undefined || !isHeld(state.uploads.get(uploadId)))
      .map((image): StrayImage => {
        const isOurs = image.uploadId !== undefined && isOwn(image.uploadId, owner);
        return { place: 'provider', provider, image, isOurs };
      }),
  );
  const atBuilders = [...offered]
    .filter((imageId) => {
      const build = state.builds.get(imageId);
      return build === undefined || build.state === 'failed' || build.state === 'deleted';
    })
    .map((imageId): StrayImage => {
      // Adopted images do not carry our mark, but have a record as long as they are remembered.
      const isOurs = isOwn(imageId, owner) || state.builds.has(imageId);
      return { place: 'builder', imageId, isOurs };
    });
  return [...atProviders, ...atBuilders];
}

/** What is to be learned of uploads that are ready, from what their providers list. */
export interface Whereabouts {
  /** Listed for the first time. */
  readonly appeared: readonly Upload[];
  /** Listed once, and not any more. */
  readonly vanished: readonly Upload[];
  /** Never listed, though ready before the listing began: this manager looks elsewhere than the builder puts them. */
  readonly invisible: readonly Upload[];
}

/** Compares the uploads that were ready before the listing began with what is listed. */
export function locateUploads(
  uploads: Iterable<Upload>,
  listings: readonly ProviderListing[],
  begun: number,
): Whereabouts {
  const listed = new Map(
    listings.map(({ provider, images }) => [provider, new Set(images.map(({ externalId }) => externalId))]),
  );
  const appeared: Upload[] = [];
  const vanished: Upload[] = [];
  const invisible: Upload[] = [];
  for (const upload of uploads) {
    const found = listed.get(upload.provider);
    if (found === undefined || upload.state !== 'ready' || (upload.endedAt ?? begun) >= begun) continue;
    const isThere = found.has(upload.externalId ?? '');
    if (isThere && !upload.seen) appeared.push(upload);
    else if (!isThere) (upload.seen ? vanished : invisible).push(upload);
  }
  return { appeared, vanished, invisible };
}

/** A record stands for the image in the provider as long as it may be there with good reason. */
function isHeld(upload: Upload | undefined): boolean {
  return upload !== undefined && upload.state !== 'failed' && upload.state !== 'deleted';
}
