import { byBuild } from '../build-order.ts';
import type { ImageCandidate } from '../types.ts';
import { type ImageFilter, matchesGlob, OWN_ACCOUNT } from './image-filter.ts';

/** An image that was not chosen, with the reason. */
export interface RefusedImage {
  readonly candidate: ImageCandidate;
  readonly reason: string;
}

/** Result of {@link latestImage}. */
export interface LatestImage {
  /** Latest matching image; undefined if no image matches. */
  readonly latest: ImageCandidate | undefined;
  /** All others with a matching name, latest first. */
  readonly refused: readonly RefusedImage[];
}

/**
 * Finds the most recent image that matches a filter. Candidates that the provider has not filtered are allowed.
 *
 * If all candidates have a build time, it decides, then the greater id, because a copy or a second upload does not make
 * an image newer. Otherwise the creation time in the provider decides, then the build time, then the greater id.
 *
 * @param now milliseconds since 1970
 */
export function latestImage(
  candidates: readonly ImageCandidate[],
  filter: ImageFilter,
  now: number = Date.now(),
): LatestImage {
  const named = candidates.filter((candidate) => hasName(candidate, filter));
  const judged = named.map((candidate) => ({ candidate, reason: reasonAgainst(candidate, filter) }));
  const passed = judged.flatMap(({ candidate, reason }) => (reason === undefined ? [candidate] : []));
  const built: Criterion = {
    called: 'built',
    of: ({ builtAt }) => builtAt?.getTime(),
    compare: byBuild(named, ({ imageId, builtAt }) => ({ imageId, builtAt: builtAt?.getTime() }), now),
  };
  const criteria = passed.every(({ builtAt }) => builtAt !== undefined) ? [built, created] : [created, built];
  const newestFirst = (one: ImageCandidate, other: ImageCandidate): number => {
    const differences = criteria.map(({ compare }) => compare(one, other));
    return differences.find((difference) => difference !== 0) ?? (one.externalId < other.externalId ? 1 : -1);
  };
  const [latest] = passed.toSorted(newestFirst);
  const refused = judged
    .filter(({ candidate }) => candidate !== latest)
    .toSorted((one, other) => newestFirst(one.candidate, other.candidate))
    .map(({ candidate, reason }) => ({
      candidate,
      reason: reason ?? lost(candidate, latest, criteria, now),
    }));
  return { latest, refused };
}

/** A time by which images are compared. */
interface Criterion {
  readonly called: string;
  readonly of: (candidate: ImageCandidate) => number | undefined;
  readonly compare: (one: ImageCandidate, other: ImageCandidate) => number;
}

const created: Criterion = {
  called: 'created',
  of: ({ createdAt }) => createdAt.getTime(),
  compare: (one, other) => other.createdAt.getTime() - one.createdAt.getTime(),
};

/** Explains why a candidate is older than the latest image. */
function lost(
  candidate: ImageCandidate,
  latest: ImageCandidate | undefined,
  criteria: readonly Criterion[],
  now: number,
): string {
  const decisive = criteria.find(({ compare }) => latest !== undefined && compare(latest, candidate) !== 0);
  if (decisive === undefined) return 'it has the same age, and its id is smaller';
  const { called, of } = decisive;
  const time = of(candidate);
  if (time === undefined) return 'its build time is unknown';
  const date = new Date(time).toISOString();
  if (time > now && called === 'built') return `its build time, ${date}, is in the future and does not count`;
  if (latest !== undefined && time >= (of(latest) ?? 0)) return 'the number of its image-id is smaller';
  return `it was ${called} earlier, at ${date}`;
}

/** Returns whether the names of an image match a filter. Images with other names are not reported as rejected. */
function hasName(candidate: ImageCandidate, { name: globs = ['*'], imageName }: ImageFilter): boolean {
  const isCalled = globs.some((glob) => matchesGlob(candidate.name, glob));
  return isCalled && (imageName === undefined || imageName.some((name) => name === candidate.imageName));
}

/** Returns the reason why an image with a matching name does not match a filter; undefined if it matches. */
function reasonAgainst(candidate: ImageCandidate, filter: ImageFilter): string | undefined {
  const { isUsable, status, isOwn, owner, visibility, architecture, tags, properties } = candidate;
  if (!isUsable) return `it is ${status}`;
  const reason =
    missing('owner', isOwn ? [OWN_ACCOUNT, owner] : [owner], filter.owner ?? [OWN_ACCOUNT]) ??
    missing('visibility', [visibility], filter.visibility) ??
    missing('architecture', [architecture], filter.architecture, ARCHITECTURES) ??
    missing('tag', tags, filter.tag);
  if (reason !== undefined) return reason;
  for (const [name, values] of filter.properties ?? []) {
    const own = Object.hasOwn(properties, name) ? [properties[name]] : [];
    const mismatch = missing(`property ${name}`, own, values);
    if (mismatch !== undefined) return mismatch;
  }
  const made = candidate.builtAt ?? candidate.createdAt;
  const { createdAfter } = filter;
  if (createdAfter === undefined || made >= createdAfter) return undefined;
  return `it was made at ${made.toISOString()}, before ${createdAfter.toISOString()}`;
}

/** Architectures by their names in Debian and in clouds. */
const ARCHITECTURES: ReadonlyMap<string | undefined, string> = new Map([
  ['amd64', 'x86_64'],
  ['x64', 'x86_64'],
  ['aarch64', 'arm64'],
  ['Arm64', 'arm64'],
]);

function missing(
  name: string,
  values: readonly (string | undefined)[],
  wanted: readonly string[] | undefined,
  synonyms: ReadonlyMap<string | undefined, string> = new Map(),
): string | undefined {
  const same = values.map((value) => synonyms.get(value) ?? value);
  if (wanted === undefined || wanted.some((value) => same.includes(synonyms.get(value) ?? value))) {
    return undefined;
  }
  const known = values.filter((value) => value !== undefined);
  return `its ${name} is ${known.join(', ') || 'unknown'}, not ${wanted.join(' or ')}`;
}
