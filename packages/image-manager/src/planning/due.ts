import { Cron } from 'croner';
import type { ManagedDiskImage } from '../configuration.ts';
import type { Build } from '../records.ts';
import { durationInWords } from './duration.ts';
import type { Pass } from './pass.ts';
import type { SurveyedDiskImage } from './survey.ts';
import { needsUpload } from './uploads.ts';

/** A reason to build, and from when on it holds: milliseconds since 1970. */
export interface Occasion {
  readonly at: number;
  readonly reason: string;
}

/** Why a disk image is to be built, now or later. When Zuul builds one is not ours to say. */
export function* occasionsToBuild(
  pass: Pass,
  diskimage: SurveyedDiskImage,
  entry: ManagedDiskImage,
): Iterable<Occasion> {
  if (entry.followsZuul !== true) yield* byConfiguration(pass, diskimage, entry);
  yield* byAbsence(pass, diskimage);
}

function* byConfiguration(
  pass: Pass,
  diskimage: SurveyedDiskImage,
  entry: ManagedDiskImage,
): Iterable<Occasion> {
  const { newestSuccess } = diskimage;
  if (newestSuccess === undefined || !diskimage.builds.some(({ state }) => state === 'ready')) {
    yield { at: -Infinity, reason: 'there is no ready build of it' };
    return;
  }
  if (newestSuccess.configuration !== entry.digest) {
    yield { at: -Infinity, reason: `its configuration has changed since the newest, ${newestSuccess.id}` };
  }
  if (entry.rebuildAge !== undefined) yield byAge(newestSuccess, entry.rebuildAge, pass.world.now);
  if (entry.rebuildCron !== undefined) yield* byCron(pass, newestSuccess, entry.rebuildCron);
}

function byAge(newest: Build, rebuildAge: number, now: number): Occasion {
  const age = durationInWords((now - newest.requestedAt) / 1000);
  return {
    at: newest.requestedAt + rebuildAge * 1000,
    reason: `the newest, ${newest.id}, is ${age} old; rebuild-age is ${durationInWords(rebuildAge)}`,
  };
}

function* byCron({ crons }: Pass, newest: Build, rebuildCron: string): Iterable<Occasion> {
  const cron = crons.get(rebuildCron);
  const next = cron instanceof Cron ? cron.nextRun(new Date(newest.requestedAt)) : null;
  if (next === null) return;
  const reason = `the newest, ${newest.id}, is from before ${next.toISOString()}, a time of rebuild-cron "${rebuildCron}"`;
  yield { at: next.getTime(), reason };
}

function* byAbsence(pass: Pass, { places, good }: SurveyedDiskImage): Iterable<Occasion> {
  const [wanted] = good;
  if (wanted === undefined) return;
  const since = pass.world.absentSince.get(wanted.id);
  if (since === undefined || !places.some((place) => needsUpload(pass, place, wanted))) return;
  const absence = durationInWords((pass.world.now - since) / 1000);
  yield {
    at: since + pass.timing.absenceLimit * 1000,
    reason: `the newest, ${wanted.id}, has been offered by no builder for ${absence}, and a provider needs it`,
  };
}
