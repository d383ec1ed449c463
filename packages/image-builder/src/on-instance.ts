import { BaseImageBuilder } from './base.ts';
import type { BuildContext } from './context.ts';
import type { DiskImage } from './disk-image.ts';
import { ImageError } from './errors.ts';
import { isConvertible } from './formats/convert.ts';
import { FORMAT_NAMES, type ImageFormat } from './formats.ts';
import type { OnInstance } from './on-instance/settings.ts';
import type { BuilderServices } from './registry.ts';

/**
 * Makes images on running machines: launches an instance of a base image, runs steps on it, cleans it, powers it off
 * and captures its disk. It goes on after a crash, or an `InstanceKeeper` ends what was left.
 */
export class OnInstanceBuilder extends BaseImageBuilder {
  override readonly nativeFormats: readonly ImageFormat[] = FORMAT_NAMES.filter(isConvertible);
  readonly #settings: OnInstance;
  readonly #services: BuilderServices;

  /** @throws ImageError `invalid-configuration` */
  constructor(diskimage: DiskImage, services: BuilderServices) {
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
    const { buildOnInstance } = await import('./on-instance/build-on-instance.ts');
    await buildOnInstance(this.#settings, this.#services, context);
  }
}
