import { BaseImageBuilder } from './base.ts';
import type { BuildContext } from './context.ts';
import type { DiskImage } from './disk-image.ts';
import type { ImageFormat } from './formats.ts';
import { makeableFormats, zuulImageOf } from './zuul-artifact/makeable-formats.ts';

/**
 * Fetches the image that a Zuul job has made. An image-id made by `zuulImageId` gets the build that it names; any other
 * the newest successful one whose artifacts are still there.
 */
export class ZuulArtifactBuilder extends BaseImageBuilder {
  override readonly nativeFormats: readonly ImageFormat[];

  /** @throws ImageError `invalid-configuration` */
  constructor(diskimage: DiskImage) {
    super(diskimage);
    const { artifacts } = zuulImageOf(diskimage);
    this.nativeFormats = makeableFormats(artifacts.map(({ format }) => format));
  }

  /**
   * @throws ImageError `build-unknown`, `build-unusable`, `zuul-unavailable`, `zuul-refused`, `invalid-configuration`,
   *   `format-unavailable`, `conversion-failed`, `command-not-found`, and those of `downloadArtifact`
   */
  protected override async createImage(context: BuildContext): Promise<void> {
    // not at the top: a daemon without such images loads no HTTP client
    const { fetchImage } = await import('./zuul-artifact/fetch-image.ts');
    await fetchImage(zuulImageOf(this.diskimage), context);
  }
}
