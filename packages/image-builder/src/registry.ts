import type { BaseImageBuilder } from './base.ts';
import { DibBuilder } from './dib.ts';
import type { DiskImage } from './disk-image.ts';
import { ImageError } from './errors.ts';
import { ZuulArtifactBuilder } from './zuul-artifact.ts';

/** A class that makes images of the disk image it is given. */
export type ImageBuilderClass = new (diskimage: DiskImage) => BaseImageBuilder;

/** The builders that come with this package, by the name that the configuration uses. */
export const IMAGE_BUILDERS: Readonly<Record<string, ImageBuilderClass>> = {
  dib: DibBuilder,
  'zuul-artifact': ZuulArtifactBuilder,
};

/**
 * Makes the builder called `name` for a disk image.
 *
 * @param builders the builders to choose from; add yours with `{ ...IMAGE_BUILDERS, mine: MyBuilder }`.
 * @throws ImageError `builder-unknown`
 */
export function createImageBuilder(
  name: string,
  diskimage: DiskImage,
  builders: Readonly<Record<string, ImageBuilderClass>> = IMAGE_BUILDERS,
): BaseImageBuilder {
  const Builder = Object.hasOwn(builders, name) ? builders[name] : undefined;
  if (Builder === undefined) {
    throw new ImageError(
      'builder-unknown',
      `disk image "${diskimage.name}" wants the builder "${name}", which is not there; use one of: ${Object.keys(builders).join(', ')}`,
    );
  }
  return new Builder(diskimage);
}
