import type { ImageFormat } from '@nodepool-builder/image-builder';
import type { ZuulBuild } from '../api/zuul-build.ts';
import { withoutQuery } from './artifact-url.ts';
import type { ImageArtifact } from './image-artifact.ts';

/** What a build holds of the image in one format, as far as it is worth to be remembered. */
export interface BuildContent {
  readonly format: ImageFormat;
  /** Without its query. */
  readonly url: string;
  readonly sha256?: string;
}

/** What is remembered of a build. */
export interface RememberedBuild {
  readonly uuid: string;
  readonly id: number;
  /** Milliseconds since the epoch. */
  readonly endTime: number;
  readonly pipeline: string;
  readonly content: readonly BuildContent[];
}

/** What was done with the builds so far. */
export interface BuildMemory {
  /** The newest one whose image was taken. */
  readonly newest: Pick<RememberedBuild, 'endTime' | 'id'> | undefined;
  /** Those that were dealt with, whether or not their image was taken. */
  readonly builds: ReadonlyMap<string, RememberedBuild>;
}

/** What is to be remembered with a chosen build. */
export interface Remembrance {
  /** The build itself, and those that returned the same image again. */
  readonly same: readonly [RememberedBuild, ...RememberedBuild[]];
  /** Older images, so that they are known if they come again, and returns of those that are known. */
  readonly passedOver: readonly RememberedBuild[];
}

/** A year of daily builds, and more than Zuul lists on ten pages. What is forgotten is older than the newest anyway. */
const MOST_BUILDS = 500;

/** The memory of who has not seen a build yet. */
export const NOTHING_SEEN: BuildMemory = { newest: undefined, builds: new Map() };

/** Record of a build. An end in the future counts as now, or it would be the newest until then. */
export function remembered(
  { uuid, id, endTime = 0, pipeline }: ZuulBuild,
  artifacts: readonly ImageArtifact[],
  now: number,
): RememberedBuild {
  const content = artifacts.map(({ format, url, sha256 }) => ({
    format,
    url: withoutQuery(url),
    ...(sha256 !== undefined && { sha256 }),
  }));
  return { uuid, id, endTime: Math.min(endTime, now), pipeline, content };
}

/** The memory after the image of a build was taken. It never goes backwards. */
export function withTaken(memory: BuildMemory, { same, passedOver }: Remembrance): BuildMemory {
  const [{ endTime, id }] = same;
  const isNewer = memory.newest === undefined || compareAge({ endTime, id }, memory.newest) > 0;
  const newest = isNewer ? { endTime, id } : memory.newest;
  return { newest, builds: withBuilds(memory, [...passedOver, ...same]) };
}

/** The memory after it turned out that the image of a build cannot be had. */
export function withGivenUp(memory: BuildMemory, { same }: Pick<Remembrance, 'same'>): BuildMemory {
  return { newest: memory.newest, builds: withBuilds(memory, same) };
}

/** Orders by the end; where two ended in the same second, by the number. Positive if `a` is newer. */
export function compareAge(
  a: Pick<RememberedBuild, 'endTime' | 'id'>,
  b: Pick<RememberedBuild, 'endTime' | 'id'>,
): number {
  return a.endTime - b.endTime || a.id - b.id;
}

/**
 * Whether one of the two builds returned the other's image: a job that promotes what another pipeline built does so.
 * The same address without a checksum is no proof within one pipeline, where a job may write to it each time.
 */
export function hasSameContent(a: RememberedBuild, b: RememberedBuild): boolean {
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

function withBuilds({ builds }: BuildMemory, added: readonly RememberedBuild[]): BuildMemory['builds'] {
  const all = new Map([...builds, ...added.map((build) => [build.uuid, build] as const)]);
  const kept = [...all.values()].toSorted(compareAge).slice(-MOST_BUILDS);
  return new Map(kept.map((build) => [build.uuid, build]));
}
