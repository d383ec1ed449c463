import {
  BaseImageBuilder,
  type BuildContext,
  type BuilderServices,
  type DiskImage,
  FORMAT_NAMES,
  ImageError,
  type ImageFormat,
  isConvertible,
} from '@nodepool-builder/image-builder';
import type { OnInstance } from './settings.ts';

/** A disk image that is made on a running machine. */
export interface InstanceDiskImage extends DiskImage {
  readonly onInstance?: OnInstance;
}

/**
 * Makes images on running machines: launches an instance of a base image, runs steps on it, cleans it, powers it off
 * and captures its disk. It goes on after a crash, or an `InstanceKeeper` ends what was left.
 */
export class OnInstanceBuilder extends BaseImageBuilder {
  override readonly nativeFormats: readonly ImageFormat[] = FORMAT_NAMES.filter(isConvertible);
  readonly #settings: OnInstance;
  readonly #services: BuilderServices;

  /** @throws ImageError `invalid-configuration` */
  constructor(diskimage: InstanceDiskImage, services: BuilderServices) {
    super(diskimage);
    const { name, onInstance } = diskimage;
    if (onInstance === undefined) {
      throw new ImageError(
        'invalid-configuration',
        `disk image "${name}" does not say how it is made on an instance; give it a block "on-instance"`,
      );
    }
    this.#settings = onInstance;
    this.#services = services;
  }

  /**
   * @throws ImageError `invalid-configuration`, `launch-failed`, `image-not-found`, `instance-failed`, `login-refused`,
   *   `host-key-changed`, `command-failed`, `format-unavailable`, `conversion-failed`, `disk-full`
   */
  protected override async createImage(context: BuildContext): Promise<void> {
    // not at the top: a daemon without such images loads no SSH client
    const { buildOnInstance } = await import('./build-on-instance.ts');
    await buildOnInstance(this.#settings, this.#services, context);
  }
}
