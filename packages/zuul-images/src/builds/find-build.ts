import type { BuildQuery } from '../api/build-query.ts';
import type { ZuulApi } from '../api/zuul-api.ts';
import type { ZuulBuild } from '../api/zuul-build.ts';
import { type BuildChoice, chooseBuild } from './choose-build.ts';
import type { ImageRules } from './image-artifact.ts';
import type { ProcessedHistory } from './processed-history.ts';

/** Longer than a build of an image takes, in milliseconds. Zuul itself ends a job after three hours unless told otherwise. */
export const LONGEST_BUILD: number = 24 * 3_600_000;

/** Which builds make an image, and what of them is the image. */
export interface BuildSource {
  readonly query: BuildQuery;
  readonly rules: ImageRules;
}

/**
 * Asks for the builds of an image, and chooses. It reads on until every further build began more than a day before
 * the newest one known ended, and so cannot have ended after it.
 *
 * @throws ZuulError
 * @throws the signal's reason
 */
export async function findBuild(
  api: Pick<ZuulApi, 'builds'>,
  { query, rules }: BuildSource,
  history: ProcessedHistory,
  signal: AbortSignal,
): Promise<BuildChoice> {
  const builds: ZuulBuild[] = [];
  let choice: BuildChoice = { refused: [] };
  for await (const page of api.builds(query, signal)) {
    builds.push(...page);
    choice = chooseBuild(builds, rules, history);
    const newest = choice.chosen?.same[0].endTime ?? history.newest?.endTime;
    const earliest = page.at(-1)?.startTime;
    if (newest !== undefined && earliest !== undefined && earliest < newest - LONGEST_BUILD) break;
  }
  return choice;
}
