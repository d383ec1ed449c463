import type { ImportedBuild } from '@nodepool-builder/image-builder';
import type { BuildQuery } from '../api/build-query.ts';
import type { ZuulApi } from '../api/zuul-api.ts';
import type { ZuulBuild } from '../api/zuul-build.ts';
import { LONGEST_BUILD } from './find-build.ts';

/**
 * Asks for one build among those of an image; undefined if it is none of them. It reads on until every further build
 * began more than a day before this one ended, or to the last page if its end lies in the future and so is wrong.
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
  const earliestStart = endTime > Date.now() ? -Infinity : endTime - LONGEST_BUILD;
  for await (const page of api.builds(query, signal)) {
    const build = page.find((candidate) => candidate.uuid === uuid);
    if (build !== undefined) return build;
    const earliest = page.at(-1)?.startTime;
    if (earliest !== undefined && earliest < earliestStart) return undefined;
  }
  return undefined;
}
