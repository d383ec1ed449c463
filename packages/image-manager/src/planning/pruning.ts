import type { Build, Upload } from '../records.ts';
import { failuresInARow, failuresThatCount, succeeded } from './back-off.ts';
import type { Pass, PlanItem } from './pass.ts';
import type { SurveyedDiskImage, Target } from './survey.ts';

/** Number of consecutive failures to keep for display. More are kept only while the back-off grows with them. */
const SHOWN_FAILURES = 10;

/** Plans the deletion of records that are no longer needed: deleted images, and failures before a success. */
export function* planPruning(pass: Pass): Iterable<PlanItem> {
  const { survey, timing } = pass;
  const keptFailures = Math.max(SHOWN_FAILURES, failuresThatCount(timing));
  const uploads = new Set<string>();
  for (const target of survey.targets) {
    for (const { id } of prunableUploads(target, keptFailures)) uploads.add(id);
  }
  const hasUploads = ({ id }: Build) => survey.uploadsOf(id).some((upload) => !uploads.has(upload.id));
  const builds: string[] = [];
  for (const diskimage of survey.diskimages.values()) {
    for (const build of prunableBuilds(diskimage, keptFailures)) {
      if (!hasUploads(build)) builds.push(build.id);
    }
  }
  if (builds.length + uploads.size === 0) return;
  yield { kind: 'prune', builds, uploads: [...uploads], reason: 'these records are no longer needed' };
}

function prunableUploads({ binding, uploads }: Target, keptFailures: number): readonly Upload[] {
  // Most targets have only ready uploads, and need none of the lists below.
  if (uploads.every(({ state }) => state === 'ready')) return [];
  const failures = surplusFailures(uploads, binding === undefined ? 0 : keptFailures);
  const lastSuccess = uploads.findIndex(succeeded);
  const olderStay = uploads
    .slice(lastSuccess + 1)
    .some(({ state, leftovers }) => state === 'failed' && leftovers);
  return [
    ...failures.filter(({ leftovers }) => !leftovers),
    // A deleted success still separates the failures before and after it.
    ...uploads.filter(({ state }, index) => state === 'deleted' && !(index === lastSuccess && olderStay)),
  ];
}

function prunableBuilds(
  { entry, builds, newestSuccess }: SurveyedDiskImage,
  keptFailures: number,
): readonly Build[] {
  const deleted = builds.filter(({ state }) => state === 'deleted');
  // Without the record, a withdrawn image would be adopted again when a builder with the image returns.
  const isRemembered = (build: Build): boolean =>
    entry !== undefined && (build === newestSuccess || (build.withdrawn && entry.isImported === true));
  return [
    ...surplusFailures(builds, entry === undefined ? 0 : keptFailures),
    ...deleted.filter((build) => !isRemembered(build)),
  ];
}

/** Returns the failures before the last success, and the oldest since then if there are more than `kept`. */
function surplusFailures<R extends Build | Upload>(records: readonly R[], kept: number): readonly R[] {
  const failed = records.filter(({ state }) => state === 'failed');
  if (failed.length === 0) return failed;
  const needed = new Set(failuresInARow(records).slice(0, kept));
  return failed.filter((record) => !needed.has(record));
}
