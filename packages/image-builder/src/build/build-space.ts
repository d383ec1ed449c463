import type { Reservation, SpaceRequest } from '../disk-space.ts';
import { ImageError } from '../errors.ts';
import { formatBytes } from '../format-bytes.ts';
import type { BuildSite } from '../repository.ts';

/** The disk space that one build reserves. */
export class BuildSpace {
  readonly #site: BuildSite;
  readonly #imageId: string;
  readonly #setting: number | undefined;
  #reservation: Reservation | undefined;

  /** @param setting bytes to reserve; undefined to reserve what the last build used */
  constructor(site: BuildSite, imageId: string, setting: number | undefined) {
    this.#site = site;
    this.#imageId = imageId;
    this.#setting = setting;
  }

  /**
   * Waits for the space of the whole build. If the required space is unknown, the build starts at once.
   *
   * @throws ImageError `disk-full`
   */
  async reserve(): Promise<void> {
    const { staging, lastSpace, space } = this.#site;
    const bytes = this.#setting ?? lastSpace ?? 0;
    const source =
      this.#setting === undefined
        ? 'like the last build; free space there, lower build-cache-size, or set disk-space of the disk image to what it needs'
        : 'according to its disk-space; free space there, or lower build-cache-size or disk-space';
    this.#reservation = await space.reserve(this.#request(staging.directory, bytes, source), this.#site);
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
    const request = this.#request(
      path,
      bytes,
      'for its next step; free space there, or set disk-space of the disk image to what it needs',
    );
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
    const tooLittle = (missing: number): Error =>
      new ImageError(
        'disk-full',
        `building image ${this.#imageId} needs ${formatBytes(bytes)} next to "${path}", ` +
          `${formatBytes(missing)} more than can become free, ${why}`,
      );
    return { name: `build of image ${this.#imageId}`, path, bytes, tooLittle };
  }
}
