import type { Material } from '@nodepool-builder/image-builder';
import { fileDigest } from '@nodepool-builder/image-builder/module-kit';
import type { ImageBuild } from '../builds/find-build.ts';
import type { ImageArtifact } from '../builds/image-artifact.ts';
import { nameOf } from '../download/artifact-url.ts';
import type { KeptFile } from './kept-files.ts';

/** Describes an artifact that became an image: its address, its unpacked bytes, and its build in Zuul. */
export async function artifactMaterial(
  { build }: ImageBuild,
  artifact: ImageArtifact,
  file: KeptFile,
  signal: AbortSignal,
): Promise<Material> {
  // The job's own digest was compared when the file was downloaded.
  const known = artifact.sha256 ?? file.sha256;
  const sha256 = known ?? (await fileDigest(file.path, { limit: Number.MAX_SAFE_INTEGER, signal }));
  const { uuid, jobName, project, pipeline, branch, change = {} } = build;
  const { ref_url: refUrl, ...others } = change;
  return {
    name: `${artifact.format} artifact of Zuul build ${uuid}`,
    uri: nameOf(artifact.url),
    digest: sha256 === undefined ? {} : { sha256 },
    annotations: {
      'build-uuid': uuid,
      job: jobName,
      project,
      pipeline,
      ...(branch !== undefined && { branch }),
      ...others,
      ...(refUrl !== undefined && { 'ref-url': refUrl }),
    },
  };
}
