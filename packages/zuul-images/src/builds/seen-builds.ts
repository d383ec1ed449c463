import { asImageError, FORMAT_NAMES } from '@nodepool-builder/image-builder';
import { DamagedRecord, Mutex, RecordType } from '@nodepool-builder/image-builder/module-kit';
import { ZuulError } from '../api/zuul-error.ts';
import { type BuildMemory, NOTHING_SEEN, type Remembrance, withGivenUp, withTaken } from './build-memory.ts';

const TEXT = { type: 'string' } as const;
const INTEGER = { type: 'integer', maximum: Number.MAX_SAFE_INTEGER } as const;
const AGE = { endTime: INTEGER, id: INTEGER } as const;

const RECORD = new RecordType({
  type: 'object',
  required: ['version', 'builds'],
  properties: {
    version: { const: 1 },
    newest: { type: 'object', required: ['endTime', 'id'], properties: AGE },
    builds: {
      type: 'array',
      items: {
        type: 'object',
        required: ['uuid', 'endTime', 'id', 'pipeline', 'content'],
        properties: {
          ...AGE,
          uuid: TEXT,
          pipeline: TEXT,
          content: {
            type: 'array',
            items: {
              type: 'object',
              required: ['format', 'url'],
              properties: { format: { enum: FORMAT_NAMES }, url: TEXT, sha256: TEXT },
            },
          },
        },
      },
    },
  },
});

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
    return new SeenBuilds(path, await readMemory(path));
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
      await RECORD.write(this.#path, recordOf(memory)).catch((error: unknown) => {
        throw asImageError(error, `writing ${this.#path}`);
      });
      this.#memory = memory;
    });
  }
}

function recordOf({ newest, builds }: BuildMemory): Parameters<typeof RECORD.text>[0] {
  return { version: 1, ...(newest !== undefined && { newest }), builds: [...builds.values()] };
}

async function readMemory(path: string): Promise<BuildMemory> {
  try {
    const record = await RECORD.read(path);
    if (record === undefined) return NOTHING_SEEN;
    const { newest, builds } = record;
    return {
      newest: newest && notInFuture(newest),
      builds: new Map(builds.map((build) => [build.uuid, notInFuture(build)])),
    };
  } catch (cause) {
    if (!(cause instanceof DamagedRecord)) throw asImageError(cause, `reading ${path}`);
    throw new ZuulError(
      'memory-damaged',
      `the record of builds ${cause.message}; remove it, and the newest image is fetched once more`,
      { cause },
    );
  }
}

/** An earlier release stored ends in the future unchanged. */
function notInFuture<T extends { readonly endTime: number }>(build: T): T {
  return { ...build, endTime: Math.min(build.endTime, Date.now()) };
}
