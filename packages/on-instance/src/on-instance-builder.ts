import {
  BaseImageBuilder,
  type BuilderServices,
  type DiskImage,
  FORMAT_NAMES,
  type ImageFormat,
} from '@nodepool-builder/image-builder';
import { type FullBuildContext, isConvertible } from '@nodepool-builder/image-builder/internal';
import type { OnInstance } from './on-instance-settings.ts';

/**
 * Builds images on running machines. It launches an instance of a base image, runs steps on it, cleans it, powers it
 * off and captures its disk. After a crash the build is resumed, or the `InstanceReaper` deletes the instance.
 */
export class OnInstanceBuilder extends BaseImageBuilder {
  override readonly nativeFormats: readonly ImageFormat[] = FORMAT_NAMES.filter(isConvertible);
  readonly #settings: OnInstance;
  readonly #services: BuilderServices;

  constructor(diskimage: DiskImage, settings: OnInstance, services: BuilderServices) {
    super(diskimage);
    const { instancesOutliveBuilds = true, keepOnFailure } = services;
    const { 'keep-on-failure': _, ...others } = settings;
    this.#settings = instancesOutliveBuilds
      ? { ...settings, ...(keepOnFailure !== undefined && { 'keep-on-failure': keepOnFailure }) }
      : { ...others, 'after-restart': 'destroy' };
    this.#services = services;
  }

  /**
   * @throws ImageError `invalid-configuration`, `launch-failed`, `image-not-found`, `instance-failed`, `login-refused`,
   *   `host-key-changed`, `command-failed`, `format-unavailable`, `conversion-failed`, `disk-full`
   */
  protected override async createImage(context: FullBuildContext): Promise<void> {
    // imported on demand, so that a daemon without such images loads no SSH client
    const { buildOnInstance } = await import('./build-on-instance.ts');
    await buildOnInstance(this.#settings, this.#services, context);
  }
}
