import { dirname } from 'node:path';
import type { Reservation, SpaceRequest } from '../disk-space.ts';
import { ImageError } from '../errors.ts';
import { formatBytes } from '../format-bytes.ts';
import type { BuildSite } from '../repository.ts';

/** The disk space that one build reserves. */
export class BuildSpace {
  readonly #site: BuildSite;
  readonly #imageId: string;
  #reservation: Reservation | undefined;

  constructor(site: BuildSite, imageId: string) {
    this.#site = site;
    this.#imageId = imageId;
  }

  /**
   * Waits for the space that the last build of the image took. Without one, the build begins at once.
   *
   * @throws ImageError `disk-full`
   */
  async reserve(): Promise<void> {
    const { staging, lastSpace = 0, space } = this.#site;
    const request = this.#request(staging.directory, lastSpace, 'as the last build took');
    this.#reservation = await space.reserve(request, this.#site);
    this.#reservation.watch();
  }

  /**
   * Waits for space that is needed while the build runs.
   *
   * @throws ImageError `disk-full`; the signal's reason
   */
  async extend(path: string, bytes: number, signal: AbortSignal): Promise<void> {
    if (this.#reservation === undefined) throw new TypeError('the build has no reservation');
    const { space, onProgress } = this.#site;
    const request = this.#request(path, bytes, 'for its next step');
    this.#reservation = await space.extend(this.#reservation, request, { signal, onProgress });
    this.#reservation.watch();
  }

  /** Maximum number of bytes that the build was seen to use. */
  async peak(): Promise<number> {
    await this.#reservation?.measure();
    return this.#reservation?.peak ?? 0;
  }

  release(): void {
    this.#reservation?.release();
  }

  #request(path: string, bytes: number, why: string): SpaceRequest {
    const tooLittle = (missing: number): Error => {
      const free = formatBytes(Math.max(0, bytes - missing));
      return new ImageError(
        'disk-full',
        `building image ${this.#imageId} needs ${formatBytes(bytes)} of disk space (${why}), but at most ${free} can become ` +
          `free in "${dirname(path)}"; free space there, or lower build-cache-size`,
      );
    };
    return { name: `build of image ${this.#imageId}`, path, bytes, tooLittle };
  }
}
