import { FORMAT_NAMES } from '@nodepool-builder/image-builder';
import { asImageError, DamagedRecord, Mutex, RecordType } from '@nodepool-builder/image-builder/module-kit';
import { ZuulError } from '../api/zuul-error.ts';
import {
  EMPTY_HISTORY,
  type HistoryUpdate,
  type ProcessedHistory,
  withGivenUp,
  withTaken,
} from './processed-history.ts';

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

/** The processed builds of one image, in a file: each build is processed once, also after a restart. */
export class ProcessedBuilds {
  readonly #path: string;
  readonly #mutex = new Mutex();
  #history: ProcessedHistory;

  private constructor(path: string, history: ProcessedHistory) {
    this.#path = path;
    this.#history = history;
  }

  /**
   * Reads the file, if it exists. Only one process may use it.
   *
   * @throws ZuulError `memory-damaged`
   * @throws ImageError `directory-not-usable`
   */
  static async open(path: string): Promise<ProcessedBuilds> {
    return new ProcessedBuilds(path, await readHistory(path));
  }

  /** The current history; later changes create another. */
  get history(): ProcessedHistory {
    return this.#history;
  }

  /**
   * Records that the image of a build was imported. The record survives a loss of power once this resolves.
   *
   * @throws ImageError `disk-full`, `directory-not-usable`; then nothing is recorded
   */
  async taken(chosen: HistoryUpdate): Promise<void> {
    await this.#become((history) => withTaken(history, chosen));
  }

  /**
   * Records that the image of a build is unavailable, so that it is not tried again. An older one may still be imported.
   *
   * @throws ImageError `disk-full`, `directory-not-usable`; then nothing is recorded
   */
  async givenUp(chosen: HistoryUpdate): Promise<void> {
    await this.#become((history) => withGivenUp(history, chosen));
  }

  async #become(next: (history: ProcessedHistory) => ProcessedHistory): Promise<void> {
    await this.#mutex.run(async () => {
      const history = next(this.#history);
      await RECORD.write(this.#path, recordOf(history)).catch((error: unknown) => {
        throw asImageError(error, `writing ${this.#path}`);
      });
      this.#history = history;
    });
  }
}

function recordOf({ newest, builds }: ProcessedHistory): Parameters<typeof RECORD.text>[0] {
  return { version: 1, ...(newest !== undefined && { newest }), builds: [...builds.values()] };
}

async function readHistory(path: string): Promise<ProcessedHistory> {
  try {
    const record = await RECORD.read(path);
    if (record === undefined) return EMPTY_HISTORY;
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
