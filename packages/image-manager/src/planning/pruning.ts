import type { Build, Upload } from '../records.ts';
import { failuresInARow, failuresThatCount, succeeded } from './back-off.ts';
import type { Finding, Pass } from './pass.ts';
import type { Place } from './places.ts';
import type { SurveyedDiskImage } from './survey.ts';

/** So many failures in a row are kept to be read; more only if the back-off grows with them. */
const SHOWN_FAILURES = 10;

/** Forgets records that nothing depends on any more: what was deleted, and failures that a success has followed. */
export function* planPruning(pass: Pass): Iterable<Finding> {
  const { survey, timing } = pass;
  const keptFailures = Math.max(SHOWN_FAILURES, failuresThatCount(timing));
  const uploads = new Set<string>();
  for (const place of survey.places) {
    for (const { id } of prunableUploads(place, keptFailures)) uploads.add(id);
  }
  const hasUploads = ({ id }: Build) => survey.uploadsOf.get(id)?.some((upload) => !uploads.has(upload.id));
  const builds: string[] = [];
  for (const diskimage of survey.diskimages.values()) {
    for (const build of prunableBuilds(diskimage, keptFailures)) {
      if (!hasUploads(build)) builds.push(build.id);
    }
  }
  if (builds.length + uploads.size === 0) return;
  yield { act: 'prune', builds, uploads: [...uploads], reason: 'nothing depends on these records any more' };
}

function prunableUploads({ use, uploads }: Place, keptFailures: number): readonly Upload[] {
  const failures = surplusFailures(uploads, use === undefined ? 0 : keptFailures);
  const lastSuccess = uploads.findIndex(succeeded);
  const olderStay = uploads
    .slice(lastSuccess + 1)
    .some(({ state, leftovers }) => state === 'failed' && leftovers);
  return [
    ...failures.filter(({ leftovers }) => !leftovers),
    // A success that was deleted still shows that the failures before it are not failures in a row.
    ...uploads.filter(({ state }, index) => state === 'deleted' && !(index === lastSuccess && olderStay)),
  ];
}

function prunableBuilds(
  { entry, builds, newestSuccess }: SurveyedDiskImage,
  keptFailures: number,
): readonly Build[] {
  const deleted = builds.filter(({ state }) => state === 'deleted');
  // What a person took away is not to be adopted when a builder that was away comes back with it.
  const isRemembered = (build: Build): boolean =>
    entry !== undefined && (build === newestSuccess || (build.withdrawn && entry.followsZuul === true));
  return [
    ...surplusFailures(builds, entry === undefined ? 0 : keptFailures),
    ...deleted.filter((build) => !isRemembered(build)),
  ];
}

/** Failures that a success has followed, and those in a row beyond the newest `kept`. */
function surplusFailures<R extends Build | Upload>(records: readonly R[], kept: number): readonly R[] {
  const needed = new Set(failuresInARow(records).slice(0, kept));
  return records.filter((record) => record.state === 'failed' && !needed.has(record));
}
