import { readFile } from 'node:fs/promises';
import { writeDurably } from '../durable.ts';
import { Mutex } from '../repository/mutex.ts';
import { asImageError, unlessMissing } from '../system-error.ts';
import { type BuildMemory, compareAge, type RememberedBuild } from './build-memory.ts';
import { memoryText, parseMemory } from './memory-file.ts';

/** A year of daily builds, and more than Zuul lists on ten pages. What is forgotten is older than the newest anyway. */
const MOST_BUILDS = 500;

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
   * Remembers builds whose image was taken. Once this resolves, not even a loss of power undoes it.
   *
   * @throws ImageError `disk-full`, `directory-not-usable`; then nothing is remembered
   */
  async taken(builds: readonly [RememberedBuild, ...RememberedBuild[]]): Promise<void> {
    const [{ endTime, id }] = builds;
    await this.#record(builds, { endTime, id });
  }

  /**
   * Remembers builds whose image cannot be had, so that they are not tried again. An older one may still be taken.
   *
   * @throws ImageError `disk-full`, `directory-not-usable`; then nothing is remembered
   */
  async givenUp(builds: readonly RememberedBuild[]): Promise<void> {
    await this.#record(builds, undefined);
  }

  async #record(added: readonly RememberedBuild[], taken: BuildMemory['newest']): Promise<void> {
    await this.#mutex.run(async () => {
      const { newest, builds } = this.#memory;
      const all = new Map([...builds, ...added.map((build) => [build.uuid, build] as const)]);
      const kept = [...all.values()].toSorted(compareAge).slice(-MOST_BUILDS);
      const next: BuildMemory = {
        newest: later(newest, taken),
        builds: new Map(kept.map((build) => [build.uuid, build])),
      };
      await writeDurably(this.#path, memoryText(next)).catch((error: unknown) => {
        throw asImageError(error, `writing ${this.#path}`);
      });
      this.#memory = next;
    });
  }
}

/** Never backwards. */
function later(a: BuildMemory['newest'], b: BuildMemory['newest']): BuildMemory['newest'] {
  if (a === undefined || b === undefined) return a ?? b;
  return compareAge(a, b) >= 0 ? a : b;
}
