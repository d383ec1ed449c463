import { readFile } from 'node:fs/promises';
import { asImageError, unlessMissing, writeDurably } from '@nodepool-builder/image-builder';
import { Mutex } from '@nodepool-builder/image-builder/module-kit';
import { type BuildMemory, type Remembrance, withGivenUp, withTaken } from './build-memory.ts';
import { memoryText, parseMemory } from './memory-file.ts';

/** The builds of one image that were dealt with, kept in a file: "since the last run" survives restarts. */
export class SeenBuilds {
  readonly #path: string;
  readonly #mutex = new Mutex();
  #memory: BuildMemory;

  private constructor(path: string, memory: BuildMemory) {
    this.#path = path;
    this.#memory = memory;
  }

  /**
   * Reads the file, if there is one. One process at a time may use it.
   *
   * @throws ZuulError `memory-damaged`
   * @throws ImageError `directory-not-usable`
   */
  static async open(path: string): Promise<SeenBuilds> {
    const text = await unlessMissing(readFile(path, 'utf8')).catch((error: unknown) => {
      throw asImageError(error, `reading ${path}`);
    });
    return new SeenBuilds(path, parseMemory(text, path));
  }

  /** As it is now; what is recorded later does not change it. */
  get memory(): BuildMemory {
    return this.#memory;
  }

  /**
   * Remembers that the image of a build was taken. Once this resolves, not even a loss of power undoes it.
   *
   * @throws ImageError `disk-full`, `directory-not-usable`; then nothing is remembered
   */
  async taken(chosen: Remembrance): Promise<void> {
    await this.#become((memory) => withTaken(memory, chosen));
  }

  /**
   * Remembers that the image of a build cannot be had, so that it is not tried again. An older one may still be taken.
   *
   * @throws ImageError `disk-full`, `directory-not-usable`; then nothing is remembered
   */
  async givenUp(chosen: Remembrance): Promise<void> {
    await this.#become((memory) => withGivenUp(memory, chosen));
  }

  async #become(next: (memory: BuildMemory) => BuildMemory): Promise<void> {
    await this.#mutex.run(async () => {
      const memory = next(this.#memory);
      await writeDurably(this.#path, memoryText(memory)).catch((error: unknown) => {
        throw asImageError(error, `writing ${this.#path}`);
      });
      this.#memory = memory;
    });
  }
}
