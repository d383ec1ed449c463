import type { DiskImage } from '@nodepool-builder/image-builder';
import { formatsToMake } from '@nodepool-builder/image-builder/module-kit';
import { artifactAccessOf } from '../builds/artifact-access.ts';
import { artifactsLeft } from '../builds/artifacts-left.ts';
import { artifactFormat, type ImageArtifact } from '../builds/image-artifact.ts';
import type { ZuulSettings } from '../zuul-settings.ts';
import { makeableFormats } from './makeable-formats.ts';

/**
 * Asks the servers whether the image of a build cannot be had any more: so many of its artifacts are gone (404, 410, or
 * a signed URL whose time is over) that the formats of the disk image cannot be made of the others. A server that fails
 * or refuses says nothing about that.
 *
 * @throws ImageError `invalid-configuration`, `format-unknown`, `format-unavailable`
 * @throws ZuulError `invalid-settings`
 * @throws the signal's reason
 */
export async function isArtifactGone(
  artifacts: readonly ImageArtifact[],
  diskimage: Pick<DiskImage, 'name' | 'formats'>,
  settings: ZuulSettings,
  signal: AbortSignal,
): Promise<boolean> {
  const { left, gone } = await artifactsLeft(artifacts, await artifactAccessOf(settings), signal);
  const makeable = makeableFormats(left.map(({ artifact }) => artifact.format));
  const formats = formatsToMake(
    diskimage,
    makeableFormats(settings.artifacts.map(({ format }) => artifactFormat(format))),
  );
  return gone.length > 0 && !formats.every((format) => makeable.includes(format));
}
