import type { ImageCandidate } from '../types.ts';
import type { ImageFilter } from './image-filter.ts';
import { hasName, refusalOf } from './refusal.ts';

/** An image that was not chosen, and why. */
export interface RefusedImage {
  readonly candidate: ImageCandidate;
  readonly reason: string;
}

/** What {@link latestImage} found. */
export interface LatestImage {
  /** Undefined if no image passes. */
  readonly latest: ImageCandidate | undefined;
  /** All others whose name fits, the latest first. */
  readonly refused: readonly RefusedImage[];
}

/**
 * The most recent image that passes a filter, whatever the provider has already left out.
 *
 * The time of the build decides if all that pass have one: to copy an image, or to upload it again, makes it no newer.
 * Otherwise it is the time of creation in the provider, by the provider's clock alone; of several with the same time the
 * one that was built later, and then the one with the greater id.
 */
export function latestImage(candidates: readonly ImageCandidate[], filter: ImageFilter): LatestImage {
  const named = candidates.filter((candidate) => hasName(candidate, filter));
  const judged = named.map((candidate) => ({ candidate, reason: refusalOf(candidate, filter) }));
  const passed = judged.flatMap(({ candidate, reason }) => (reason === undefined ? [candidate] : []));
  const criteria = passed.every(({ builtAt }) => builtAt !== undefined) ? [built, created] : [created, built];
  const newestFirst = (one: ImageCandidate, other: ImageCandidate): number => {
    const differences = criteria.map(({ of }) => of(other) - of(one));
    return differences.find((difference) => difference !== 0) ?? (one.externalId < other.externalId ? 1 : -1);
  };
  const [latest] = passed.toSorted(newestFirst);
  const refused = judged
    .filter(({ candidate }) => candidate !== latest)
    .toSorted((one, other) => newestFirst(one.candidate, other.candidate))
    .map(({ candidate, reason }) => ({ candidate, reason: reason ?? lost(candidate, latest, criteria) }));
  return { latest, refused };
}

/** A time that images are compared by. */
interface Criterion {
  readonly called: string;
  readonly of: (candidate: ImageCandidate) => number;
}

const built: Criterion = { called: 'built', of: ({ builtAt }) => builtAt?.getTime() ?? 0 };
const created: Criterion = { called: 'created', of: ({ createdAt }) => createdAt.getTime() };

/** What it comes behind the latest by. */
function lost(
  candidate: ImageCandidate,
  latest: ImageCandidate | undefined,
  criteria: readonly Criterion[],
): string {
  const decisive = criteria.find(({ of }) => latest !== undefined && of(latest) !== of(candidate));
  if (decisive === undefined) return 'it is as old, and its id is smaller';
  if (decisive.of(candidate) === 0) return 'it is not known when it was built';
  return `it was ${decisive.called} earlier, at ${new Date(decisive.of(candidate)).toISOString()}`;
}
