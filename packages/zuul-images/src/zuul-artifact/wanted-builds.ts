import { type BuildContext, ImageError } from '@nodepool-builder/image-builder';
import { type ImportedBuild, parseImportedImageId } from '@nodepool-builder/image-builder/internal';
import type { ZuulApi } from '../api/zuul-api.ts';
import {
  findBuild,
  findNamedBuild,
  type ImageBuild,
  type ImageSource,
  type RefusedBuild,
} from '../builds/find-build.ts';
import { imageArtifacts } from '../builds/image-artifact.ts';
import { EMPTY_HISTORY, withSkipped } from '../builds/processed-builds.ts';

/** Maximum number of attempted builds. If artifacts are kept for some days, those of older builds have also expired. */
const MAX_BUILDS = 10;

/**
 * Yields the build that the image-id names, or else the newest builds, one after the other.
 *
 * @throws ImageError `build-unknown`, `build-unusable`
 * @throws CloudError
 */
export async function* wantedBuilds(
  api: Pick<ZuulApi, 'builds' | 'name'>,
  source: ImageSource,
  { imageId, diskimage, signal }: Pick<BuildContext, 'imageId' | 'diskimage' | 'signal'>,
): AsyncGenerator<ImageBuild, void, undefined> {
  const named = parseImportedImageId(imageId);
  if (named?.image === diskimage.name) {
    yield await namedBuild(api, source, named, signal);
    return;
  }
  let history = EMPTY_HISTORY;
  for (let count = 0; count < MAX_BUILDS; count += 1) {
    const { chosen, unusable } = await findBuild(api, source, history, signal);
    if (chosen === undefined && count === 0) throw nothingFound(api.name, source, unusable[0]);
    if (chosen === undefined) return;
    yield chosen;
    history = withSkipped(history, chosen);
  }
}

async function namedBuild(
  api: Pick<ZuulApi, 'builds' | 'name'>,
  source: ImageSource,
  named: ImportedBuild,
  signal: AbortSignal,
): Promise<ImageBuild> {
  const { job } = source;
  const build = await findNamedBuild(api, source, named, signal);
  if (build === undefined) {
    throw new ImageError(
      'build-unknown',
      `${api.name} does not list build ${named.uuid} among the successful builds of ${job}; request a newer image`,
    );
  }
  try {
    return { build, artifacts: imageArtifacts(build, source) };
  } catch (cause) {
    throw unusableBuild(`build ${build.uuid} of ${job} cannot be used`, (cause as Error).message, cause);
  }
}

function nothingFound(api: string, source: ImageSource, unusable: RefusedBuild | undefined): ImageError {
  const { job, project, pipelines, branch } = source;
  const where = [`project ${project}`, `pipeline ${pipelines.join(' or ')}`];
  if (branch !== undefined) where.push(`branch ${branch}`);
  const builds = `${job} (${where.join(', ')})`;
  if (unusable === undefined) {
    return new ImageError(
      'build-unknown',
      `${api} lists no successful build of ${builds}; check these settings, or wait for a build`,
    );
  }
  const { build, reason } = unusable;
  return unusableBuild(`${api} lists no build of ${builds} with the image; build ${build.uuid}`, reason);
}

function unusableBuild(what: string, reason: string, cause?: unknown): ImageError {
  return new ImageError(
    'build-unusable',
    `${what}: ${reason}; correct the artifacts that the job returns, or the settings artifacts and image-name`,
    { cause },
  );
}
