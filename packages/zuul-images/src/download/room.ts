import { statfs } from 'node:fs/promises';
import { ImageError } from '@nodepool-builder/image-builder';

/** Bytes after whose writing the file system is asked again. */
const INTERVAL = 64 * 2 ** 20;

/** Watches over the free room of a file system while it is written to. */
export class Room {
  readonly #directory: string;
  readonly #leaveFree: number;
  #unchecked = 0;

  /** @param leaveFree bytes that have to stay free */
  constructor(directory: string, leaveFree: number) {
    this.#directory = directory;
    this.#leaveFree = leaveFree;
  }

  /**
   * To be called with what is about to be written.
   *
   * @throws ImageError `disk-full`
   */
  async take(bytes: number): Promise<void> {
    this.#unchecked += bytes;
    if (this.#unchecked < INTERVAL) return;
    this.#unchecked = 0;
    await this.check(0);
  }

  /**
   * Whether so many bytes would fit.
   *
   * @throws ImageError `disk-full`
   */
  async check(bytes: number): Promise<void> {
    const { bavail, bsize } = await statfs(this.#directory);
    const missing = bytes + this.#leaveFree - bavail * bsize;
    if (missing <= 0) return;
    throw new ImageError(
      'disk-full',
      `an artifact does not fit into "${this.#directory}": ${missing} bytes more have to be free; make room there`,
    );
  }
}
