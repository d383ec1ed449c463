import { FORMAT_NAMES, type SettingsOf } from '@nodepool-builder/image-builder';
import {
  asImageError,
  DamagedRecordError,
  objectOf,
  RecordDirectory,
  TEXT,
} from '@nodepool-builder/image-builder/internal';
import { CloudError } from '@nodepool-builder/image-builder/plugin';
import type { ZuulBuild } from '../api/zuul-build.ts';
import { nameOf } from '../download/artifact-url.ts';
import type { ImageArtifact } from './image-artifact.ts';

const INTEGER = { type: 'integer', maximum: Number.MAX_SAFE_INTEGER } as const;

/** Age of a build; `endTime` is in milliseconds since 1970. */
const AGE = { endTime: INTEGER, id: INTEGER } as const;

const BUILD = objectOf({
  ...AGE,
  uuid: TEXT,
  pipeline: TEXT,
  /** The image in each format. The URL has no query. */
  content: {
    type: 'array',
    items: objectOf({ format: { enum: FORMAT_NAMES }, url: TEXT }, { sha256: TEXT }),
  },
});

const HISTORY = objectOf(
  { version: { const: 1 }, builds: { type: 'array', items: BUILD } },
  { newest: objectOf(AGE) },
);

/** Record of a build. */
export type BuildRecord = SettingsOf<typeof BUILD>;

type BuildAge = Pick<BuildRecord, 'endTime' | 'id'>;

/** The processed builds of one image. */
export interface ProcessedHistory {
  /** The newest build whose image was imported. */
  readonly newest: BuildAge | undefined;
  /** Processed builds by uuid, with or without an imported image. */
  readonly builds: ReadonlyMap<string, BuildRecord>;
}

/** Builds that are processed together. */
export interface HistoryUpdate {
  /** The chosen build, and others that returned the same image. */
  readonly same: readonly [BuildRecord, ...BuildRecord[]];
  /** Builds with older images, or that returned a processed image again. */
  readonly passedOver: readonly BuildRecord[];
}

/**
 * Maximum number of builds, which is a year of daily builds. A build that drops out is older than the newest and is not
 * imported again.
 */
const MAX_BUILDS = 500;

/** History without processed builds. */
export const EMPTY_HISTORY: ProcessedHistory = { newest: undefined, builds: new Map() };

/**
 * Creates the record of a build. A future end counts as now, because otherwise the build would be the newest until
 * then.
 */
export function recordOfBuild(
  { uuid, id, endTime = 0, pipeline }: ZuulBuild,
  artifacts: readonly ImageArtifact[],
  now: number,
): BuildRecord {
  const content = artifacts.map(({ format, url, sha256 }) => ({
    format,
    url: nameOf(url),
    ...(sha256 !== undefined && { sha256 }),
  }));
  return { uuid, id, endTime: Math.min(endTime, now), pipeline, content };
}

/** Returns the history after an import. Its newest build never becomes older. */
export function withImported(history: ProcessedHistory, update: HistoryUpdate): ProcessedHistory {
  const { same, passedOver } = update;
  const [{ endTime, id }] = same;
  const isNewer = history.newest === undefined || compareAge({ endTime, id }, history.newest) > 0;
  const newest = isNewer ? { endTime, id } : history.newest;
  return { newest, builds: withBuilds(history, [...passedOver, ...same]) };
}

/**
 * Returns the history after the artifacts of a build expired. The build is not tried again, but an older one may be.
 */
export function withSkipped(
  history: ProcessedHistory,
  { same }: Pick<HistoryUpdate, 'same'>,
): ProcessedHistory {
  return { newest: history.newest, builds: withBuilds(history, same) };
}

function withBuilds({ builds }: ProcessedHistory, added: readonly BuildRecord[]): ProcessedHistory['builds'] {
  const all = new Map([...builds, ...added.map((build) => [build.uuid, build] as const)]);
  const kept = [...all.values()].toSorted(compareAge).slice(-MAX_BUILDS);
  return new Map(kept.map((build) => [build.uuid, build]));
}

/** Compares builds by their end, and by the number if both ended in the same second. Positive if `a` is newer. */
export function compareAge(a: BuildAge, b: BuildAge): number {
  return a.endTime - b.endTime || a.id - b.id;
}

/**
 * Returns whether one of two builds returned the image of the other, as a promotion does. Without a digest, the same
 * URL proves this only across pipelines, because within one, a job may overwrite the object.
 */
export function hasSameContent(a: BuildRecord, b: BuildRecord): boolean {
  const pairs = a.content.flatMap((one) => {
    const other = b.content.find(({ format }) => format === one.format);
    return other === undefined ? [] : [{ one, other }];
  });
  const isSame = pairs.every(({ one, other }) =>
    one.sha256 !== undefined && other.sha256 !== undefined
      ? one.sha256 === other.sha256
      : one.url === other.url && a.pipeline !== b.pipeline,
  );
  return pairs.length > 0 && isSame;
}

/** The processed builds of one image, in a file. Each build is processed once, even after a restart. */
export class ProcessedBuilds {
  readonly #records: RecordDirectory<typeof HISTORY>;
  readonly #name: string;
  /** The current history; {@link write} replaces it. */
  history: ProcessedHistory;

  private constructor(records: RecordDirectory<typeof HISTORY>, name: string, history: ProcessedHistory) {
    this.#records = records;
    this.#name = name;
    this.history = history;
  }

  /**
   * Reads the file of an image, if it exists. Only one importer may use it.
   *
   * @throws CloudError `record-damaged`
   * @throws ImageError `directory-not-usable`
   */
  static async open(directory: string, imageName: string): Promise<ProcessedBuilds> {
    const records = new RecordDirectory(directory, HISTORY);
    const name = encodeURIComponent(imageName);
    const record = await records.read(name).catch((cause: unknown) => {
      if (!(cause instanceof DamagedRecordError)) throw asImageError(cause, `reading ${records.file(name)}`);
      const message = `the record of processed builds ${cause.message}; remove it, and the newest image is imported again`;
      throw new CloudError('record-damaged', message, { cause });
    });
    const builds = (record?.builds ?? []).map((build) => [build.uuid, build] as const);
    return new ProcessedBuilds(records, name, { newest: record?.newest, builds: new Map(builds) });
  }

  /**
   * Replaces the history. The record survives a power failure once this resolves.
   *
   * @throws ImageError `disk-full`, `directory-not-usable`; the history is then unchanged
   */
  async write(history: ProcessedHistory): Promise<void> {
    const { newest, builds } = history;
    const record = { version: 1, ...(newest && { newest }), builds: [...builds.values()] } as const;
    await this.#records.write(this.#name, record).catch((error: unknown) => {
      throw asImageError(error, `writing ${this.#records.file(this.#name)}`);
    });
    this.history = history;
  }
}
