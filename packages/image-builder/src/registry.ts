import type { BaseImageBuilder } from './base.ts';
import { DibBuilder } from './dib.ts';
import type { DiskImage } from './disk-image.ts';
import { ImageError } from './errors.ts';
import type { InstanceProvider } from './instance/instance-provider.ts';

/** What builders are given besides their disk image. */
export interface BuilderServices {
  /**
   * The provider of instances of that name.
   *
   * @throws ImageError `invalid-configuration` if there is none
   */
  instanceProvider(name: string): InstanceProvider;
}

/** A class that makes images of the disk image it is given. */
export type ImageBuilderClass = new (diskimage: DiskImage, services: BuilderServices) => BaseImageBuilder;

/** For who builds without instances. */
export const NO_SERVICES: BuilderServices = {
  instanceProvider: (name) => {
    throw new ImageError(
      'invalid-configuration',
      `there is no provider of instances "${name}" here; hand it on as a service`,
    );
  },
};

/** The builders that come with this package, by the name that the configuration uses. */
export const IMAGE_BUILDERS: Readonly<Record<string, ImageBuilderClass>> = {
  dib: DibBuilder,
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
  services: BuilderServices = NO_SERVICES,
): BaseImageBuilder {
  const Builder = Object.hasOwn(builders, name) ? builders[name] : undefined;
  if (Builder === undefined) {
    throw new ImageError(
      'builder-unknown',
      `disk image "${diskimage.name}" wants the builder "${name}", which is not there; use one of: ${Object.keys(builders).join(', ')}`,
    );
  }
  return new Builder(diskimage, services);
}
