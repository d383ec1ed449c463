import { type BuildContext, ImageError } from '@nodepool-builder/image-builder';
import { type ImportedBuild, parseImportedImageId } from '@nodepool-builder/image-builder/module-kit';
import type { BuildQuery } from '../api/build-query.ts';
import type { ZuulApi } from '../api/zuul-api.ts';
import type { ZuulBuild } from '../api/zuul-build.ts';
import { REFUSALS, type RefusedBuild } from '../builds/choose-build.ts';
import { type BuildSource, findBuild, LONGEST_BUILD } from '../builds/find-build.ts';
import { type ImageArtifact, imageArtifacts } from '../builds/image-artifact.ts';
import { EMPTY_HISTORY, withGivenUp } from '../builds/processed-history.ts';

/** How many builds are tried: where artifacts are kept for some days, those of builds before are gone as well. */
const MOST_BUILDS = 10;

/** A build whose image would do. */
export interface WantedBuild {
  readonly build: ZuulBuild;
  /** At least one. */
  readonly artifacts: readonly ImageArtifact[];
}

/**
 * The build that the image-id names, or else the newest ones, for each time that the one before could not be had.
 *
 * @throws ImageError `build-unknown`, `build-unusable`
 * @throws ZuulError
 * @throws the signal's reason
 */
export async function* wantedBuilds(
  api: Pick<ZuulApi, 'builds' | 'name'>,
  source: BuildSource,
  { imageId, imageName, signal }: Pick<BuildContext, 'imageId' | 'imageName' | 'signal'>,
): AsyncGenerator<WantedBuild, void, undefined> {
  const named = parseImportedImageId(imageId);
  if (named?.image === imageName) {
    yield await namedBuild(api, source, named, signal);
    return;
  }
  let history = EMPTY_HISTORY;
  for (let count = 0; count < MOST_BUILDS; count += 1) {
    const { chosen, refused } = await findBuild(api, source, history, signal);
    if (chosen === undefined && count === 0) throw nothingFound(api.name, source, refused);
    if (chosen === undefined) return;
    yield chosen;
    history = withGivenUp(history, chosen);
  }
}

async function namedBuild(
  api: Pick<ZuulApi, 'builds' | 'name'>,
  { query, rules }: BuildSource,
  named: ImportedBuild,
  signal: AbortSignal,
): Promise<WantedBuild> {
  const build = await findNamedBuild(api, query, named, signal);
  if (build === undefined) {
    throw new ImageError(
      'build-unknown',
      `${api.name} does not list build ${named.uuid} among the successful builds of ${query.job} (any more); ask for a newer image`,
    );
  }
  try {
    const artifacts = imageArtifacts(build, rules);
    if (artifacts.length === 0) throw new Error(REFUSALS.unusable);
    return { build, artifacts };
  } catch (error) {
    const reasons = [(error as Error).message, ...build.unusableArtifacts].join('; ');
    throw new ImageError(
      'build-unusable',
      `build ${build.uuid} of ${query.job} cannot be used: ${reasons}; correct what the job returns, or the artifacts of the image`,
      { cause: error },
    );
  }
}

function nothingFound(
  api: string,
  { query: { job, project, pipelines, branch }, rules }: BuildSource,
  [refused]: readonly RefusedBuild[],
): ImageError {
  const where = [`project ${project}`, `pipeline ${pipelines.join(' or ')}`];
  if (branch !== undefined) where.push(`branch ${branch}`);
  const builds = `${job} (${where.join(', ')})`;
  if (refused === undefined) {
    return new ImageError(
      'build-unknown',
      `${api} lists no successful build of ${builds}; check these settings, or wait for one`,
    );
  }
  const types = rules.artifacts.map(({ type }) => `"${type}"`).join(' or ');
  const detail = refused.detail || `none is of type ${types}`;
  return new ImageError(
    'build-unusable',
    `${api} lists no build of ${builds} with the image; of ${refused.build.uuid}: ${REFUSALS[refused.refusal]} (${detail}); ` +
      'correct what the job returns, or the artifacts of the image',
  );
}

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
