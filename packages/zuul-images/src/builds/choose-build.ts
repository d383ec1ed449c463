import type { ZuulBuild } from '../api/zuul-build.ts';
import { type ImageArtifact, type ImageRules, imageArtifacts } from './image-artifact.ts';
import {
  type BuildRecord,
  compareAge,
  type HistoryUpdate,
  hasSameContent,
  type ProcessedHistory,
  recordOfBuild,
} from './processed-history.ts';

/** A build whose image is to be taken. */
export interface ChosenBuild extends HistoryUpdate {
  readonly build: ZuulBuild;
  /** At least one. */
  readonly artifacts: readonly ImageArtifact[];
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
  /** The particulars, where there are any. */
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
  readonly entry: BuildRecord;
}

/** The builds that returned one image, the first of them first. */
type ImageBuilds = [Candidate, ...Candidate[]];

/**
 * Chooses the build whose image is to be taken next: the one that ended last, if it ended after the one whose image
 * was taken last. Zuul lists builds by their start, so neither their order nor their numbers tell. The age of an image
 * that several builds return is that of the first of them.
 *
 * @param history what was done before; {@link EMPTY_HISTORY} to get the newest of all
 * @param now milliseconds since the epoch
 */
export function chooseBuild(
  builds: Iterable<ZuulBuild>,
  rules: ImageRules,
  history: ProcessedHistory,
  now: number = Date.now(),
): BuildChoice {
  const refused: RefusedBuild[] = [];
  const candidates: Candidate[] = [];
  const known: Candidate[] = [];
  const entries = [...history.builds.values()];
  for (const build of builds) {
    const candidate = examine(build, rules, history, now);
    if ('refusal' in candidate) refused.push(candidate);
    else if (entries.some((entry) => hasSameContent(entry, candidate.entry))) known.push(candidate);
    else candidates.push(candidate);
  }
  const images = byImage(candidates);
  const repeats = [...known, ...images.flatMap(([, ...others]) => others)];
  refused.push(...refuse(repeats, 'repeated'));

  const newest = images.at(-1);
  if (newest === undefined) return { refused };
  const [{ build, artifacts, entry }, ...again] = newest;
  if (history.newest !== undefined && compareAge(entry, history.newest) <= 0) {
    return { refused: [...refused, ...refuse(originals(images), 'older')] };
  }
  const others = images.slice(0, -1);
  return {
    chosen: {
      build,
      artifacts,
      same: [entry, ...again.map((repeat) => repeat.entry)],
      passedOver: [...others.flat(), ...known].map((other) => other.entry),
    },
    refused: [...refused, ...refuse(originals(others), 'superseded')],
  };
}

function examine(
  build: ZuulBuild,
  rules: ImageRules,
  history: ProcessedHistory,
  now: number,
): Candidate | RefusedBuild {
  if (history.builds.has(build.uuid)) return { build, refusal: 'seen' };
  if (build.result !== 'SUCCESS' || !build.final) return { build, refusal: 'unsuccessful' };
  if (build.endTime === undefined) return { build, refusal: 'unfinished' };
  try {
    const artifacts = imageArtifacts(build, rules);
    if (artifacts.length === 0) throw new Error(build.unusableArtifacts.join('; '));
    return { build, artifacts, entry: recordOfBuild(build, artifacts, now) };
  } catch (error) {
    return { build, refusal: 'unusable', detail: (error as Error).message };
  }
}

function refuse(candidates: readonly Candidate[], refusal: Refusal): readonly RefusedBuild[] {
  return candidates.map(({ build }) => ({ build, refusal }));
}

function originals(images: readonly ImageBuilds[]): readonly Candidate[] {
  return images.map(([original]) => original);
}

/** In the order of the age of the images. */
function byImage(candidates: readonly Candidate[]): readonly ImageBuilds[] {
  const images: ImageBuilds[] = [];
  for (const candidate of candidates.toSorted((a, b) => compareAge(a.entry, b.entry))) {
    const image = images.find(([first]) => hasSameContent(first.entry, candidate.entry));
    if (image === undefined) images.push([candidate]);
    else image.push(candidate);
  }
  return images;
}
