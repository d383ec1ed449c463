import type { GlanceImage } from '../fixtures/openstack/account.ts';
import type { WantedUpload } from './nodepool-uploads.ts';
import type { SoakSite } from './soak-site.ts';

/** Compares the clouds with nodepool's uploads; returns a sentence for each difference. */
export async function compareClouds(site: SoakSite, wanted: readonly WantedUpload[]): Promise<string[]> {
  const faults = await Promise.all(
    site.providers.map(async ({ name, account }) => {
      const uploads = wanted.filter(({ provider }) => provider === name);
      return compareCloud(site, uploads, await account.images()).map((fault) => `${name}: ${fault}`);
    }),
  );
  return faults.flat();
}

function compareCloud(
  site: SoakSite,
  uploads: readonly WantedUpload[],
  found: readonly GlanceImage[],
): string[] {
  const byExternalId = new Map(found.map((image) => [image.id, image]));
  const faults = uploads.flatMap(({ imageId, externalId = '' }) => {
    const image = byExternalId.get(externalId);
    byExternalId.delete(externalId);
    if (image === undefined) return [`image ${imageId} is not there as ${externalId}`];
    const isRight =
      image.status === 'active' &&
      image.nodepool_build_id === imageId &&
      image.checksum === site.images.get(imageId);
    return isRight ? [] : [`image ${imageId} is not whole: ${JSON.stringify(image)}`];
  });
  const others = [...byExternalId.values()].map(
    (image) => `image ${String(image.nodepool_build_id)} is there once more, ${image.status}: ${image.id}`,
  );
  return [...faults, ...others];
}
