import type { ImportedBuild } from '@nodepool-builder/image-builder/internal';
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

/** Maximum duration of an image build in milliseconds. Zuul's default limit of a job is three hours. */
const MAX_BUILD_TIME = 24 * 3_600_000;

/** A build with an image. */
export interface ImageBuild {
  readonly build: ZuulBuild;
  /** Image artifacts of the build, at least one. */
  readonly artifacts: readonly ImageArtifact[];
}

/** A build whose image will be imported. */
export interface ChosenBuild extends ImageBuild, HistoryUpdate {}

/** A successful build whose image is not imported. */
export interface RefusedBuild {
  readonly build: ZuulBuild;
  readonly reason: string;
}

/** Result of {@link chooseBuild}. */
export interface BuildChoice {
  readonly chosen?: ChosenBuild;
  /** Builds without a usable image, in the order of the list. */
  readonly unusable: readonly RefusedBuild[];
  /** Builds that returned an image again, or that ended before the newest imported one. */
  readonly ignored: readonly RefusedBuild[];
}

interface Candidate extends ImageBuild {
  readonly record: BuildRecord;
}

/** The builds that returned one image, oldest first. */
type Group = [Candidate, ...Candidate[]];

/**
 * Chooses the build whose image is imported next: the one that ended last, if it is newer than the newest imported one.
 * Zuul lists builds by their start, so neither their order nor their numbers decide. An image that several builds
 * return is as old as the first of them.
 *
 * @param history {@link EMPTY_HISTORY} to get the newest of all builds
 * @param now milliseconds since 1970
 */
export function chooseBuild(
  builds: Iterable<ZuulBuild>,
  rules: ImageRules,
  history: ProcessedHistory,
  now: number = Date.now(),
): BuildChoice {
  const unusable: RefusedBuild[] = [];
  const candidates: Candidate[] = [];
  for (const build of builds) {
    if (history.builds.has(build.uuid)) continue;
    const candidate = examine(build, rules, now);
    if ('reason' in candidate) unusable.push(candidate);
    else candidates.push(candidate);
  }
  const repeated: Candidate[] = [];
  const ignored: RefusedBuild[] = [];
  const ignore = (candidate: Candidate, first: BuildRecord): void => {
    repeated.push(candidate);
    ignored.push({ build: candidate.build, reason: `it returned the image of build ${first.uuid} again` });
  };
  const processed = [...history.builds.values()];
  for (const candidate of candidates) {
    const first = processed.find((other) => hasSameContent(other, candidate.record));
    if (first !== undefined) ignore(candidate, first);
  }
  const images = byImage(candidates.filter((candidate) => !repeated.includes(candidate)));

  const [newest, ...older] = images.toReversed();
  if (newest === undefined) return { unusable, ignored };
  const [{ build, artifacts, record }, ...again] = newest;
  if (history.newest !== undefined && compareAge(record, history.newest) <= 0) {
    const reason = 'it ended before the build of the newest image';
    return {
      unusable,
      ignored: [...ignored, ...images.flat().map((late) => ({ build: late.build, reason }))],
    };
  }
  const passedOver = [...older.flat(), ...repeated].map((other) => other.record);
  for (const repeat of again) ignore(repeat, record);
  const same: ChosenBuild['same'] = [record, ...again.map((repeat) => repeat.record)];
  return { chosen: { build, artifacts, same, passedOver }, unusable, ignored };
}

function examine(build: ZuulBuild, rules: ImageRules, now: number): Candidate | RefusedBuild {
  if (build.endTime === undefined) return { build, reason: 'Zuul does not report when it ended' };
  try {
    const artifacts = imageArtifacts(build, rules);
    return { build, artifacts, record: recordOfBuild(build, artifacts, now) };
  } catch (error) {
    return { build, reason: (error as Error).message };
  }
}

/** Groups builds by image, oldest image first. */
function byImage(candidates: readonly Candidate[]): readonly Group[] {
  const images: Group[] = [];
  for (const candidate of candidates.toSorted((a, b) => compareAge(a.record, b.record))) {
    const image = images.find(([first]) => hasSameContent(first.record, candidate.record));
    if (image === undefined) images.push([candidate]);
    else image.push(candidate);
  }
  return images;
}

/** Settings that select the builds that make an image, and the artifacts that are the image. */
export interface ImageSource extends BuildQuery, ImageRules {}

/**
 * Lists the builds of an image and chooses one. It reads pages until all further builds started more than a day before
 * the newest known one ended, and so ended before it.
 *
 * @throws CloudError
 * @throws the signal's reason
 */
export async function findBuild(
  api: Pick<ZuulApi, 'builds'>,
  source: ImageSource,
  history: ProcessedHistory,
  signal: AbortSignal,
): Promise<BuildChoice> {
  const builds: ZuulBuild[] = [];
  let choice: BuildChoice = { unusable: [], ignored: [] };
  for await (const page of api.builds(source, signal)) {
    builds.push(...page);
    choice = chooseBuild(builds, source, history);
    const newest = choice.chosen?.same[0].endTime ?? history.newest?.endTime;
    if (newest !== undefined && startedBefore(newest - MAX_BUILD_TIME, page)) break;
  }
  return choice;
}

/**
 * Finds one build by its uuid. It reads pages until all further builds started more than a day before this one ended.
 * If its end is in the future, and so wrong, it reads all pages.
 *
 * @throws CloudError
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
    if (!isWrong && startedBefore(endTime - MAX_BUILD_TIME, page)) break;
  }
  return undefined;
}

function startedBefore(time: number, page: readonly ZuulBuild[]): boolean {
  const earliest = page.at(-1)?.startTime;
  return earliest !== undefined && earliest < time;
}
