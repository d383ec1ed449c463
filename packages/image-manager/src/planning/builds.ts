import type { ManagedDiskImage } from '../configuration.ts';
import { failuresInARow, failuresInWords, retryTime } from './back-off.ts';
import { cancelledBuild, type Occasion, occasionsToBuild } from './due.ts';
import { type Pass, type PlanItem, stepOfRecord, withoutBuilder } from './pass.ts';
import type { SurveyedDiskImage } from './survey.ts';

/** Plans builds that are due, and resumes builds without a task. */
export function* planBuilds(pass: Pass): Iterable<PlanItem> {
  for (const diskimage of pass.survey.diskimages.values()) {
    const building = diskimage.builds.filter(({ state }) => state === 'building');
    for (const { id } of building) {
      const reason = 'it is being built, but has no task: its manager ended, or its job was lost';
      yield* stepOfRecord(pass, { kind: 'resume-build', id, reason });
    }
    const [current] = building;
    if (diskimage.entry === undefined) continue;
    if (current === undefined) yield* planNewBuild(pass, diskimage, diskimage.entry);
    else if (pass.observation.requested.has(diskimage.name)) {
      const { paused } = diskimage;
      const pause = paused === undefined ? '' : `it is ${paused}; `;
      const reason = `${pause}a build was requested; it starts when ${current.id} has ended`;
      yield { subject: `diskimage ${diskimage.name}`, reason };
    }
  }
}

function* planNewBuild(
  pass: Pass,
  diskimage: SurveyedDiskImage,
  entry: ManagedDiskImage,
): Iterable<PlanItem> {
  const { name, paused } = diskimage;
  const subject = `diskimage ${name}`;
  const { now, requested, offered } = pass.observation;
  const isRequested = requested.has(name);
  const occasions = isRequested
    ? [{ at: now, reason: 'it was requested' }]
    : [...occasionsToBuild(pass, diskimage, entry)];
  const due = occasions.find(({ at }) => at <= now);
  if (due === undefined) {
    if (paused !== undefined) {
      if (!entry.pause) yield { subject, reason: `it is ${paused}` };
      return;
    }
    yield* later(diskimage, entry, occasions);
    if (entry.isImported === true) yield { subject, reason: whyNothingIsDue(pass, diskimage) };
    return;
  }
  const { reason } = due;
  if (paused !== undefined) {
    yield { subject, reason: `it is ${paused}; a build is due: ${reason}` };
    return;
  }
  if (!offered.builds.has(name)) {
    yield { subject, reason: `${withoutBuilder(pass, `image-build:${name}`)}; a build is due: ${reason}` };
    return;
  }
  const failures = failuresInARow(diskimage.builds, entry.digest).filter(
    ({ cancelledBy }) => cancelledBy === undefined,
  );
  const until = retryTime(failures, pass.timing);
  if (until > now && !isRequested) {
    yield {
      subject,
      reason: `${failuresInWords(failures)}; the next follows later: ${reason}`,
      until,
    };
    return;
  }
  yield { kind: 'build', diskimage: name, reason };
}

/** Yields the next builds, or a note after a cancelled one. */
function* later(
  diskimage: SurveyedDiskImage,
  entry: ManagedDiskImage,
  occasions: readonly Occasion[],
): Iterable<PlanItem> {
  const { name } = diskimage;
  const cancelled = cancelledBuild(diskimage, entry);
  const why = cancelled === undefined ? '' : `the last build was cancelled by ${cancelled.cancelledBy}; `;
  for (const { at, reason } of occasions) yield { diskimage: name, at, reason: why + reason };
  if (cancelled === undefined || occasions.length > 0) return;
  const remedy = 'the next one is built on request, with "rebuild", or when the configuration changes';
  yield { subject: `diskimage ${name}`, reason: why + remedy };
}

/** Explains why no build is planned for a disk image that Zuul builds. */
function whyNothingIsDue(pass: Pass, { name, builds }: SurveyedDiskImage): string {
  if (!pass.observation.offered.builds.has(name)) {
    return `${withoutBuilder(pass, `image-build:${name}`)}, so that none imports the builds of Zuul`;
  }
  const next = 'builders import the next build of Zuul on their own';
  return builds.some(({ state }) => state === 'ready') ? next : `it has no ready build; ${next}`;
}
