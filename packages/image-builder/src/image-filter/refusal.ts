import type { ImageCandidate } from '../types.ts';
import { matchesGlob } from './glob.ts';
import { type ImageFilter, SELF } from './image-filter.ts';

/** Texts of an image, by the key of the filter that they are compared with. */
const TEXTS = {
  owner: ({ owner, isOwn }) => [...(isOwn ? [SELF] : []), owner],
  visibility: ({ visibility }) => [visibility],
  architecture: ({ architecture }) => [architecture],
  tag: ({ tags }) => tags,
} satisfies Partial<
  Readonly<Record<keyof ImageFilter, (candidate: ImageCandidate) => readonly (string | undefined)[]>>
>;

/** Whether the names of an image match a filter. Images with other names are not reported as refused. */
export function hasName(candidate: ImageCandidate, filter: ImageFilter): boolean {
  const { name: globs = ['*'], imageName: exact } = filter;
  const isCalled = globs.some((glob) => matchesGlob(candidate.name, glob));
  return isCalled && (exact === undefined || exact.some((name) => name === candidate.imageName));
}

/** Reason why an image with a matching name does not pass a filter; undefined if it passes. */
export function refusalOf(candidate: ImageCandidate, filter: ImageFilter): string | undefined {
  if (!candidate.isUsable) return `it is ${candidate.status}`;
  const wanted = { owner: [SELF], ...filter };
  for (const [key, textsOf] of Object.entries(TEXTS)) {
    const reason = missing(key, textsOf(candidate), wanted[key as keyof typeof TEXTS]);
    if (reason !== undefined) return reason;
  }
  for (const [name, values] of filter.properties ?? []) {
    const own = Object.hasOwn(candidate.properties, name) ? [candidate.properties[name]] : [];
    const reason = missing(`property ${name}`, own, values);
    if (reason !== undefined) return reason;
  }
  const made = candidate.builtAt ?? candidate.createdAt;
  const { createdAfter } = filter;
  if (createdAfter === undefined || made >= createdAfter) return undefined;
  return `it was made at ${made.toISOString()}, before ${createdAfter.toISOString()}`;
}

function missing(
  called: string,
  there: readonly (string | undefined)[],
  wanted: readonly string[] | undefined,
): string | undefined {
  if (wanted === undefined || wanted.some((value) => there.includes(value))) return undefined;
  const known = there.filter((value) => value !== undefined);
  return `its ${called} is ${known.join(', ') || 'unknown'}, not ${wanted.join(' or ')}`;
}
