import type { CandidateOptions, ImageCandidate, ImageFilter } from '@nodepool-builder/image-builder';
import { toCandidate } from './candidate.ts';
import type { GlanceImage } from './glance-image.ts';
import type { ImageApi } from './image-api.ts';
import { imageQueries } from './image-query.ts';
import { unlessAbsent } from './unless-absent.ts';

/** What {@link findCandidates} asks, and for whom. */
export interface CandidateSearch extends CandidateOptions {
  readonly images: ImageApi;
  readonly signal: AbortSignal;
}

/** Asks Glance for all images that may pass the filter, each once. */
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
