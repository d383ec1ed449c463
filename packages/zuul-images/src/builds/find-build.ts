import type { ImportedBuild } from '@nodepool-builder/image-builder/module-kit';
import type { ZuulApi } from '../api/zuul-api.ts';
import type { BuildQuery, ZuulBuild } from '../api/zuul-build.ts';
import { type ImageArtifact, type ImageRules, imageArtifacts } from './image-artifact.ts';
import {
  type BuildRecord,
  compareAge,
  type HistoryUpdate,
  hasSameContent,
  type ProcessedHistory,
  recordOfBuild,
} from './processed-builds.ts';

/** Milliseconds, longer than any build of an image. Zuul's default limit of a job is three hours. */
const LONGEST_BUILD = 24 * 3_600_000;

/** A build with an image. */
export interface ImageBuild {
  readonly build: ZuulBuild;
  /** At least one. */
  readonly artifacts: readonly ImageArtifact[];
}

/** A build whose image is to be imported. */
export interface ChosenBuild extends ImageBuild, HistoryUpdate {}

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

interface Candidate extends ImageBuild {
  readonly record: BuildRecord;
}

/** The builds that returned one image, the oldest first. */
type Group = [Candidate, ...Candidate[]];

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
function byImage(candidates: readonly Candidate[]): readonly Group[] {
  const images: Group[] = [];
  for (const candidate of candidates.toSorted((a, b) => compareAge(a.record, b.record))) {
    const image = images.find(([first]) => hasSameContent(first.record, candidate.record));
    if (image === undefined) images.push([candidate]);
    else image.push(candidate);
  }
  return images;
}

/** Settings that decide which builds make an image, and which of their artifacts are the image. */
export interface ImageSource extends BuildQuery, ImageRules {}

/**
 * Lists the builds of an image and chooses one. It reads pages until all further builds started more than a day before
 * the newest known one ended, and so ended before it.
 *
 * @throws ZuulError
 * @throws the signal's reason
 */
export async function findBuild(
  api: Pick<ZuulApi, 'builds'>,
  source: ImageSource,
  history: ProcessedHistory,
  signal: AbortSignal,
): Promise<BuildChoice> {
  const builds: ZuulBuild[] = [];
  let choice: BuildChoice = { unusable: [] };
  for await (const page of api.builds(source, signal)) {
    builds.push(...page);
    choice = chooseBuild(builds, source, history);
    const newest = choice.chosen?.same[0].endTime ?? history.newest?.endTime;
    if (newest !== undefined && startedBefore(newest - LONGEST_BUILD, page)) break;
  }
  return choice;
}

/**
 * Finds one build by its uuid. It reads pages until all further builds started more than a day before this one ended; if
 * its end is in the future, and so wrong, it reads all pages.
 *
 * @throws ZuulError
 * @throws the signal's reason
 */
export async function findNamedBuild(
  api: Pick<ZuulApi, 'builds'>,
  query: BuildQuery,
  { uuid, endTime }: Pick<ImportedBuild, 'uuid' | 'endTime'>,
  signal: AbortSignal,
): Promise<ZuulBuild | undefined> {
  const isWrong = endTime > Date.now();
  for await (const page of api.builds(query, signal)) {
    const build = page.find((candidate) => candidate.uuid === uuid);
    if (build !== undefined) return build;
    if (!isWrong && startedBefore(endTime - LONGEST_BUILD, page)) break;
  }
  return undefined;
}

function startedBefore(time: number, page: readonly ZuulBuild[]): boolean {
  const earliest = page.at(-1)?.startTime;
  return earliest !== undefined && earliest < time;
}
