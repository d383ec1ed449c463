import { Cron } from 'croner';
import type { ManagedDiskImage } from '../configuration.ts';
import type { Build } from '../records.ts';
import type { Pass } from './pass.ts';
import type { SurveyedDiskImage } from './survey.ts';
import { needsUpload } from './uploads.ts';

/** A reason to build, and the time from which it applies. */
export interface Occasion {
  /** Milliseconds since 1970. */
  readonly at: number;
  /** Becomes the `reason` of the build's record, where it must still be true once the build is ready. */
  readonly reason: string;
}

/**
 * Finds the reasons to build a disk image, now or later. For an image that Zuul builds, only its absence counts. A
 * cancelled build settles the reasons that applied when it was requested. After that, only later times count.
 */
export function* occasionsToBuild(
  pass: Pass,
  diskimage: SurveyedDiskImage,
  entry: ManagedDiskImage,
): Iterable<Occasion> {
  const cancelled = cancelledBuild(diskimage, entry);
  const isNew = ({ at }: Occasion): boolean => cancelled === undefined || at > cancelled.requestedAt;
  if (entry.isImported !== true) {
    yield* [...byConfiguration(diskimage, entry)].filter(isNew);
    const { newestSuccess } = diskimage;
    for (const timesAfter of [byAge, byCron]) {
      const times = [newestSuccess, cancelled].flatMap((build) =>
        build === undefined ? [] : timesAfter(pass, build, entry),
      );
      yield* times.filter(isNew).slice(0, 1);
    }
  }
  yield* [...byAbsence(pass, diskimage)].filter(isNew);
  if (entry.isImported !== true) yield* byFailure(diskimage, entry);
}

/**
 * Returns the newest build of a disk image, if a user cancelled it; undefined if the configuration has changed since.
 */
export function cancelledBuild(
  { builds: [newest] }: SurveyedDiskImage,
  { digest }: ManagedDiskImage,
): Build | undefined {
  const isCancelled = newest?.state === 'failed' && newest.cancelledBy !== undefined;
  return isCancelled && newest.configuration === digest ? newest : undefined;
}

function* byConfiguration(
  { newestSuccess, builds }: SurveyedDiskImage,
  { digest }: ManagedDiskImage,
): Iterable<Occasion> {
  if (newestSuccess === undefined) yield { at: -Infinity, reason: 'its first ready build' };
  else if (!builds.some(({ state }) => state === 'ready')) {
    yield { at: -Infinity, reason: 'its ready builds were deleted' };
  } else if (newestSuccess.configuration !== digest) {
    yield { at: -Infinity, reason: `its configuration has changed since ${newestSuccess.id}` };
  }
}

/** Whatever a failed build was for, such as a request, it is built again. A cancelled build is not. */
function* byFailure(
  { builds: [newest] }: SurveyedDiskImage,
  { digest }: ManagedDiskImage,
): Iterable<Occasion> {
  if (newest?.state !== 'failed' || newest.cancelledBy !== undefined) return;
  if (newest.configuration === digest)
    yield { at: -Infinity, reason: `the build before it, ${newest.id}, failed` };
}

function byAge({ observation }: Pass, build: Build, { rebuildAge }: ManagedDiskImage): readonly Occasion[] {
  if (rebuildAge === undefined) return [];
  const at = build.requestedAt + rebuildAge * 1000;
  const reaches = at <= observation.now ? 'has reached' : 'reaches';
  return [{ at, reason: `${named(build)} ${reaches} rebuild-age, ${durationInWords(rebuildAge)}` }];
}

function byCron({ crons }: Pass, build: Build, { rebuildCron = '' }: ManagedDiskImage): readonly Occasion[] {
  const next = crons.get(rebuildCron)?.nextRun(new Date(build.requestedAt));
  if (!next) return [];
  // The reason names no time, because lists show it in any time zone.
  return [{ at: next.getTime(), reason: `the time of rebuild-cron "${rebuildCron}" after ${named(build)}` }];
}

function named({ id, cancelledBy }: Build): string {
  return cancelledBy === undefined ? id : `the cancelled build, ${id},`;
}

function* byAbsence(pass: Pass, { targets, good }: SurveyedDiskImage): Iterable<Occasion> {
  const [wanted] = good;
  if (wanted === undefined) return;
  const since = pass.observation.absentSince.get(wanted.id);
  if (since === undefined || !targets.some((target) => needsUpload(pass, target, wanted))) return;
  const absence = durationInWords((pass.observation.now - since) / 1000);
  yield {
    at: since + pass.timing.absenceTimeout * 1000,
    reason: `no builder offered ${wanted.id}, which a provider needed, for ${absence}`,
  };
}

const SECOND = { name: 'second', seconds: 1 };
const UNITS = [
  { name: 'day', seconds: 86_400 },
  { name: 'hour', seconds: 3600 },
  { name: 'minute', seconds: 60 },
  SECOND,
];

/** Formats a duration as `25 hours`, in the largest unit that gives at least two, rounded down, and never below 0. */
export function durationInWords(seconds: number): string {
  const unit = UNITS.find((each) => seconds >= 2 * each.seconds) ?? SECOND;
  const count = Math.max(0, Math.floor(seconds / unit.seconds));
  return `${count} ${unit.name}${count === 1 ? '' : 's'}`;
}

/** Parses the cron expressions of disk images, each once. */
export function parseCrons(entries: readonly ManagedDiskImage[]): ReadonlyMap<string, Cron> {
  const expressions = new Set(entries.flatMap(({ rebuildCron }) => rebuildCron ?? []));
  return new Map(Array.from(expressions, (expression) => [expression, new Cron(expression)]));
}
