import type { ImageRepository } from '@nodepool-builder/image-builder';
import { InstanceRecords } from '@nodepool-builder/on-instance';

/** Names of the providers in which builds of an earlier process may have left something. */
export async function rememberedProviders(
  repository: Pick<ImageRepository, 'recordDirectory' | 'images'>,
): Promise<readonly string[]> {
  const instances = new InstanceRecords(repository);
  const names = [...repository.images.values()].flatMap(({ snapshots = [] }) =>
    snapshots.map(({ provider }) => provider),
  );
  for (const imageId of await instances.imageIds()) {
    const claim = instances.tryClaim(imageId);
    const entry = await claim?.read().finally(() => claim.release());
    if (entry !== undefined) names.push(entry.provider);
  }
  return names;
}
