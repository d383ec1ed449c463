import type { CandidateOptions, ImageCandidate, ImageFilter } from '@nodepool-builder/image-builder';
import type { GlanceImage } from './glance-image.ts';
import type { ImageApi } from './image-api.ts';
import { imageQueries } from './image-query.ts';
import { unlessAbsent } from './unless-absent.ts';
import { BUILD_ID, BUILD_TIME, IMAGE_NAME } from './upload/image-properties.ts';

/**
 * An image in Glance as filters see it.
 *
 * @param projectId of the credentials in use; undefined in a cloud without Keystone, where images have no owner
 */
export function toCandidate(image: GlanceImage, projectId: string | undefined): ImageCandidate {
  const { tags } = image.properties;
  const properties = scalars(image.properties);
  const {
    name = '',
    owner,
    visibility,
    architecture,
    [IMAGE_NAME]: imageName,
    [BUILD_ID]: imageId,
  } = properties;
  const isHidden = image.status === 'active' && image.properties.os_hidden === true;
  const built = Date.parse(properties[BUILD_TIME] ?? '');
  return {
    externalId: image.id,
    name,
    status: isHidden ? 'hidden' : image.status,
    isUsable: image.status === 'active' && !isHidden,
    isOwn: owner === projectId,
    ...(imageName !== undefined && { imageName }),
    ...(imageId !== undefined && { imageId }),
    ...(owner !== undefined && { owner }),
    ...(architecture !== undefined && { architecture }),
    ...(visibility !== undefined && { visibility }),
    tags: Array.isArray(tags) ? tags.map(String) : [],
    properties,
    createdAt: image.createdAt,
    ...(Number.isFinite(built) && { builtAt: new Date(built) }),
  };
}

/** All scalar properties as text, without nulls. */
function scalars(properties: Readonly<Record<string, unknown>>): Record<string, string> {
  const entries = Object.entries(properties).filter(([, value]) => typeof value !== 'object');
  return Object.fromEntries(entries.map(([name, value]) => [name, String(value)]));
}

/** Inputs of {@link findCandidates}. */
export interface CandidateSearch extends CandidateOptions {
  readonly images: ImageApi;
  readonly signal: AbortSignal;
}

/** Lists all images of Glance that may pass the filter, each once. */
export async function findCandidates(
  filter: ImageFilter,
  { images, known = [], withRefused = false, signal }: CandidateSearch,
): Promise<readonly ImageCandidate[]> {
  const projectId = await images.projectId(signal);
  const found = new Map<string, GlanceImage>();
  for (const query of imageQueries(filter, { projectId, withRefused })) {
    for (const image of await images.find(query, signal)) found.set(image.id, image);
  }
  for (const id of known) {
    const image = found.get(id) ?? (await images.get(id, signal).catch(unlessAbsent));
    if (image !== undefined) found.set(image.id, image);
  }
  return [...found.values()].map((image) => toCandidate(image, projectId));
}
