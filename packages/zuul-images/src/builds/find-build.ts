import type { ImportedBuild } from '@nodepool-builder/image-builder/module-kit';
import type { ZuulApi } from '../api/zuul-api.ts';
import type { BuildQuery, ZuulBuild } from '../api/zuul-build.ts';
import { type BuildChoice, chooseBuild } from './choose-build.ts';
import type { ImageRules } from './image-artifact.ts';
import type { ProcessedHistory } from './processed-builds.ts';

/** Milliseconds, longer than any build of an image. Zuul's default limit of a job is three hours. */
const LONGEST_BUILD = 24 * 3_600_000;

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
