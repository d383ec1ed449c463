import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import type { FullBuildContext } from '@nodepool-builder/image-builder/internal';
import type { ZuulBuild } from '../api/zuul-build.ts';
import { nameOf } from '../download/artifact-url.ts';
import { downloadArtifact } from '../download/download-artifact.ts';
import type { ArtifactAccess } from '../download/http-source.ts';

/** `type` in the metadata of an artifact that lists the packages of an image. */
const TYPE = 'sbom';

/** Maximum size of a list in bytes. */
const MAX_SIZE = 8 * 2 ** 20;

/**
 * Fetches the package list that a job returned for an image, if the build requests one. A failure is only logged,
 * because the image is good without the list.
 *
 * @param imageName `image_name` in the metadata, if the job returned lists of several images
 */
export async function fetchPackageList(
  { artifacts }: Pick<ZuulBuild, 'artifacts'>,
  imageName: string,
  access: ArtifactAccess,
  {
    packageList,
    directory,
    signal,
    log,
  }: Pick<FullBuildContext, 'packageList' | 'directory' | 'signal' | 'log'>,
): Promise<void> {
  const lists = artifacts.filter(({ metadata }) => metadata.type === TYPE);
  const list =
    lists.find(({ metadata }) => metadata.image_name === imageName) ??
    lists.find(({ metadata }) => metadata.image_name === undefined);
  if (packageList === undefined || list === undefined) return;
  const request = { url: list.url, access, directory: join(directory, 'package-list') };
  try {
    const { path } = await downloadArtifact({ ...request, maxSize: MAX_SIZE, leaveFree: 0 }, { signal });
    await rename(path, packageList);
  } catch (error) {
    signal.throwIfAborted();
    log(`cannot fetch the package list ${nameOf(list.url)}: ${String(error)}`);
  }
}
