import type { ImageFormat } from '@nodepool-builder/image-builder';
import type { ZuulBuild } from '../api/zuul-build.ts';
import { withoutQuery } from './artifact-url.ts';
import type { ImageArtifact } from './image-artifact.ts';

/** The image of a build in one format. */
export interface BuildContent {
  readonly format: ImageFormat;
  /** Without its query. */
  readonly url: string;
  readonly sha256?: string;
}

/** Record of a build. */
export interface BuildRecord {
  readonly uuid: string;
  readonly id: number;
  /** Milliseconds since the epoch. */
  readonly endTime: number;
  readonly pipeline: string;
  readonly content: readonly BuildContent[];
}

/** The builds that were processed. */
export interface ProcessedHistory {
  /** The newest build whose image was imported. */
  readonly newest: Pick<BuildRecord, 'endTime' | 'id'> | undefined;
  /** Processed builds, with or without an imported image. */
  readonly builds: ReadonlyMap<string, BuildRecord>;
}

/** Builds that are processed together. */
export interface HistoryUpdate {
  /** The chosen build, and others that returned the same image. */
  readonly same: readonly [BuildRecord, ...BuildRecord[]];
  /** Builds with older images, or that returned a processed image again. */
  readonly passedOver: readonly BuildRecord[];
}

/** A year of daily builds. A build that drops out is older than the newest and is not imported again. */
const MOST_BUILDS = 500;

/** No build was processed. */
export const EMPTY_HISTORY: ProcessedHistory = { newest: undefined, builds: new Map() };

/** Creates the record of a build. An end in the future counts as now, or the build would be the newest until then. */
export function recordOfBuild(
  { uuid, id, endTime = 0, pipeline }: ZuulBuild,
  artifacts: readonly ImageArtifact[],
  now: number,
): BuildRecord {
  const content = artifacts.map(({ format, url, sha256 }) => ({
    format,
    url: withoutQuery(url),
    ...(sha256 !== undefined && { sha256 }),
  }));
  return { uuid, id, endTime: Math.min(endTime, now), pipeline, content };
}

/** The history after an import. Its newest build never becomes older. */
export function withTaken(history: ProcessedHistory, { same, passedOver }: HistoryUpdate): ProcessedHistory {
  const [{ endTime, id }] = same;
  const isNewer = history.newest === undefined || compareAge({ endTime, id }, history.newest) > 0;
  const newest = isNewer ? { endTime, id } : history.newest;
  return { newest, builds: withBuilds(history, [...passedOver, ...same]) };
}

/** The history after the image of a build proved to be unavailable. */
export function withGivenUp(
  history: ProcessedHistory,
  { same }: Pick<HistoryUpdate, 'same'>,
): ProcessedHistory {
  return { newest: history.newest, builds: withBuilds(history, same) };
}

/** Orders by the end; where two ended in the same second, by the number. Positive if `a` is newer. */
export function compareAge(
  a: Pick<BuildRecord, 'endTime' | 'id'>,
  b: Pick<BuildRecord, 'endTime' | 'id'>,
): number {
  return a.endTime - b.endTime || a.id - b.id;
}

/**
 * Whether one of the two builds returned the other's image: a job that promotes what another pipeline built does so.
 * The same address without a checksum is no proof within one pipeline, where a job may write to it each time.
 */
export function hasSameContent(a: BuildRecord, b: BuildRecord): boolean {
  let isCommon = false;
  for (const one of a.content) {
    const other = b.content.find(({ format }) => format === one.format);
    if (other === undefined) continue;
    const isSame =
      one.sha256 !== undefined && other.sha256 !== undefined
        ? one.sha256 === other.sha256
        : one.url === other.url && a.pipeline !== b.pipeline;
    if (!isSame) return false;
    isCommon = true;
  }
  return isCommon;
}

function withBuilds({ builds }: ProcessedHistory, added: readonly BuildRecord[]): ProcessedHistory['builds'] {
  const all = new Map([...builds, ...added.map((build) => [build.uuid, build] as const)]);
  const kept = [...all.values()].toSorted(compareAge).slice(-MOST_BUILDS);
  return new Map(kept.map((build) => [build.uuid, build]));
}
