import {
  type BuildMemory,
  compareAge,
  hasSameContent,
  type RememberedBuild,
  remembered,
} from './build-memory.ts';
import { type ImageArtifact, type ImageRules, imageArtifacts } from './image-artifact.ts';
import type { ZuulBuild } from './zuul-build.ts';

/** A build whose image is to be taken. */
export interface ChosenBuild {
  readonly build: ZuulBuild;
  /** At least one. */
  readonly artifacts: readonly ImageArtifact[];
  /** What to remember once its image was taken: the build, and those that returned the same image again. */
  readonly seen: readonly [RememberedBuild, ...RememberedBuild[]];
}

/** Why a build was not chosen. */
export const REFUSALS = {
  seen: 'it was dealt with before',
  unsuccessful: 'it did not succeed, or was tried again',
  unfinished: 'Zuul does not tell when it ended',
  unusable: 'it has no usable artifact of the image',
  repeated: 'it returns the image of another build again',
  older: 'the image of a newer build was taken before',
  superseded: 'there is a newer one',
} as const;

/** Why a build was not chosen: a row of {@link REFUSALS}. */
export type Refusal = keyof typeof REFUSALS;

/** A build that was not chosen. */
export interface RefusedBuild {
  readonly build: ZuulBuild;
  readonly refusal: Refusal;
  /** The particulars, if there are any. */
  readonly detail?: string;
}

/** What {@link chooseBuild} made of a list of builds. */
export interface BuildChoice {
  readonly chosen?: ChosenBuild;
  readonly refused: readonly RefusedBuild[];
}

interface Candidate {
  readonly build: ZuulBuild;
  readonly artifacts: readonly ImageArtifact[];
  readonly entry: RememberedBuild;
}

/**
 * Chooses the build whose image is to be taken next: the one that ended last, if it ended after the one whose image
 * was taken last. Zuul lists builds by their start, so neither their order nor their numbers tell. The age of an image
 * that several builds return is that of the first of them.
 *
 * @param memory what was done before; {@link NOTHING_SEEN} to get the newest of all
 */
export function chooseBuild(
  builds: Iterable<ZuulBuild>,
  rules: ImageRules,
  memory: BuildMemory,
): BuildChoice {
  const refused: RefusedBuild[] = [];
  const candidates: Candidate[] = [];
  for (const build of builds) {
    const candidate = examine(build, rules, memory);
    if ('refusal' in candidate) refused.push(candidate);
    else candidates.push(candidate);
  }
  candidates.sort((a, b) => compareAge(a.entry, b.entry));

  const images: [Candidate, ...Candidate[]][] = [];
  for (const candidate of candidates) {
    const original = images.find(([first]) => hasSameContent(first.entry, candidate.entry));
    if (original === undefined) images.push([candidate]);
    else {
      original.push(candidate);
      refused.push({ build: candidate.build, refusal: 'repeated' });
    }
  }

  const newest = images.pop();
  refused.push(...images.map(([{ build }]): RefusedBuild => ({ build, refusal: 'superseded' })));
  if (newest === undefined) return { refused };
  const [{ build, artifacts, entry }, ...repeats] = newest;
  return { chosen: { build, artifacts, seen: [entry, ...repeats.map((repeat) => repeat.entry)] }, refused };
}

function examine(build: ZuulBuild, rules: ImageRules, memory: BuildMemory): Candidate | RefusedBuild {
  const refuse = (refusal: Refusal, detail?: string): RefusedBuild => ({
    build,
    refusal,
    ...(detail !== undefined && { detail }),
  });
  if (memory.builds.has(build.uuid)) return refuse('seen');
  if (build.result !== 'SUCCESS' || !build.final) return refuse('unsuccessful');
  if (build.endTime === undefined) return refuse('unfinished');
  let artifacts: readonly ImageArtifact[];
  try {
    artifacts = imageArtifacts(build, rules);
  } catch (error) {
    return refuse('unusable', (error as Error).message);
  }
  if (artifacts.length === 0) return refuse('unusable', build.unusableArtifacts.join('; ') || undefined);
  const entry = remembered(build, artifacts);
  if (memory.newest !== undefined && compareAge(entry, memory.newest) <= 0) return refuse('older');
  for (const known of memory.builds.values()) if (hasSameContent(known, entry)) return refuse('repeated');
  return { build, artifacts, entry };
}
