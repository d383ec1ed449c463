import { formatsToMake } from '../build/formats-to-make.ts';
import type { DiskImage } from '../disk-image.ts';
import { artifactAccessOf } from '../zuul/artifact-access.ts';
import { artifactsLeft } from '../zuul/artifacts-left.ts';
import type { ImageArtifact } from '../zuul/image-artifact.ts';
import { makeableFormats, zuulImageOf } from './makeable-formats.ts';

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
  diskimage: DiskImage,
  signal: AbortSignal,
): Promise<boolean> {
  const zuul = zuulImageOf(diskimage);
  const { left, gone } = await artifactsLeft(artifacts, await artifactAccessOf(zuul), signal);
  const makeable = makeableFormats(left.map(({ artifact }) => artifact.format));
  const formats = formatsToMake(diskimage, makeableFormats(zuul.artifacts.map(({ format }) => format)));
  return gone.length > 0 && !formats.every((format) => makeable.includes(format));
}
