import { BaseImageBuilder, type BuildContext, type ImageFormat } from '@nodepool-builder/image-builder';
import { makeableFormats, zuulImageOf } from './zuul-artifact/makeable-formats.ts';
import type { ZuulDiskImage, ZuulImage } from './zuul-image.ts';

/**
 * Fetches the image that a Zuul job has made. An image-id made by `importedImageId` gets the build that it names; any other
 * the newest successful one whose artifacts are still there.
 */
export class ZuulArtifactBuilder extends BaseImageBuilder {
  override readonly nativeFormats: readonly ImageFormat[];
  override readonly importsBuilds = true;
  readonly #zuul: ZuulImage;

  /** @throws ImageError `invalid-configuration` */
  constructor(diskimage: ZuulDiskImage) {
    super(diskimage);
    this.#zuul = zuulImageOf(diskimage);
    this.nativeFormats = makeableFormats(this.#zuul.artifacts.map(({ format }) => format));
  }

  /**
   * @throws ImageError `build-unknown`, `build-unusable`, `zuul-unavailable`, `zuul-refused`, `invalid-configuration`,
   *   `format-unavailable`, `conversion-failed`, `command-not-found`, and those of `downloadArtifact`
   */
  protected override async createImage(context: BuildContext): Promise<void> {
    // not at the top: a daemon without such images loads no HTTP client
    const { fetchImage } = await import('./zuul-artifact/fetch-image.ts');
    await fetchImage(this.#zuul, context);
  }
}
