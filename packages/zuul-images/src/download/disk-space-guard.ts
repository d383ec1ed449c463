import { statfs } from 'node:fs/promises';
import { ImageError } from '@nodepool-builder/image-builder';

/** Bytes between two checks. */
const INTERVAL = 64 * 2 ** 20;

/** Checks the free space of a file system during a download. */
export class DiskSpaceGuard {
  readonly #directory: string;
  readonly #leaveFree: number;
  #unchecked = 0;

  /** @param leaveFree bytes that must stay free */
  constructor(directory: string, leaveFree: number) {
    this.#directory = directory;
    this.#leaveFree = leaveFree;
  }

  /**
   * Counts written bytes, and checks the free space at intervals.
   *
   * @throws ImageError `disk-full`
   */
  async count(bytes: number): Promise<void> {
    this.#unchecked += bytes;
    if (this.#unchecked < INTERVAL) return;
    this.#unchecked = 0;
    await this.check(0);
  }

  /**
   * Checks that the bytes fit.
   *
   * @throws ImageError `disk-full`
   */
  async check(bytes: number): Promise<void> {
    const { bavail, bsize } = await statfs(this.#directory);
    const missing = bytes + this.#leaveFree - bavail * bsize;
    if (missing <= 0) return;
    throw new ImageError(
      'disk-full',
      `an artifact does not fit into "${this.#directory}": ${missing} more bytes must be free; make room there`,
    );
  }
}
