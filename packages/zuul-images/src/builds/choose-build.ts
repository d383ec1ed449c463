import type { ZuulBuild } from '../api/zuul-build.ts';
import { type ImageArtifact, type ImageRules, imageArtifacts } from './image-artifact.ts';
import {
  type BuildRecord,
  compareAge,
  type HistoryUpdate,
  hasSameContent,
  type ProcessedHistory,
  recordOfBuild,
} from './processed-builds.ts';

/** A build whose image is to be imported. */
export interface ChosenBuild extends HistoryUpdate {
  readonly build: ZuulBuild;
  /** At least one. */
  readonly artifacts: readonly ImageArtifact[];
}

/** A successful build without a usable image. */
export interface UnusableBuild {
  readonly build: ZuulBuild;
  readonly reason: string;
}

/** Result of {@link chooseBuild}. */
export interface BuildChoice {
  readonly chosen?: ChosenBuild;
  /** In the order of the list. */
  readonly unusable: readonly UnusableBuild[];
}

interface Candidate {
  readonly build: ZuulBuild;
  readonly artifacts: readonly ImageArtifact[];
  readonly record: BuildRecord;
}

/** The builds that returned one image, the oldest first. */
type ImageBuilds = [Candidate, ...Candidate[]];

/**
 * Chooses the build whose image is imported next: the one that ended last, if it is newer than the newest imported one.
 * Zuul lists builds by their start, so neither their order nor their numbers decide. An image that several builds return
 * is as old as the first of them.
 *
 * @param history {@link EMPTY_HISTORY} to get the newest of all builds
 * @param now milliseconds since the epoch
 */
export function chooseBuild(
  builds: Iterable<ZuulBuild>,
  rules: ImageRules,
  history: ProcessedHistory,
  now: number = Date.now(),
): BuildChoice {
  const unusable: UnusableBuild[] = [];
  const candidates: Candidate[] = [];
  for (const build of builds) {
    if (history.builds.has(build.uuid)) continue;
    const candidate = examine(build, rules, now);
    if ('reason' in candidate) unusable.push(candidate);
    else candidates.push(candidate);
  }
  const processed = [...history.builds.values()];
  const isProcessed = ({ record }: Candidate): boolean =>
    processed.some((other) => hasSameContent(other, record));
  const repeated = candidates.filter(isProcessed);
  const images = byImage(candidates.filter((candidate) => !repeated.includes(candidate)));

  const [newest, ...older] = images.toReversed();
  if (newest === undefined) return { unusable };
  const [{ build, artifacts, record }, ...again] = newest;
  if (history.newest !== undefined && compareAge(record, history.newest) <= 0) return { unusable };
  const same: ChosenBuild['same'] = [record, ...again.map((repeat) => repeat.record)];
  const passedOver = [...older.flat(), ...repeated].map((other) => other.record);
  return { chosen: { build, artifacts, same, passedOver }, unusable };
}

function examine(build: ZuulBuild, rules: ImageRules, now: number): Candidate | UnusableBuild {
  if (build.endTime === undefined) return { build, reason: 'Zuul does not say when it ended' };
  try {
    const artifacts = imageArtifacts(build, rules);
    return { build, artifacts, record: recordOfBuild(build, artifacts, now) };
  } catch (error) {
    return { build, reason: (error as Error).message };
  }
}

/** Groups builds by image, the oldest image first. */
function byImage(candidates: readonly Candidate[]): readonly ImageBuilds[] {
  const images: ImageBuilds[] = [];
  for (const candidate of candidates.toSorted((a, b) => compareAge(a.record, b.record))) {
    const image = images.find(([first]) => hasSameContent(first.record, candidate.record));
    if (image === undefined) images.push([candidate]);
    else image.push(candidate);
  }
  return images;
}
