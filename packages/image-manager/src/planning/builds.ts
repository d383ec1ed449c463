import type { ManagedDiskImage } from '../configuration.ts';
import { failuresInARow, failuresInWords, retryTime } from './back-off.ts';
import { occasionsToBuild } from './due.ts';
import { type Finding, type Pass, stepOfRecord } from './pass.ts';
import type { SurveyedDiskImage } from './survey.ts';

/** Follows builds that nobody follows, and begins those that are due. */
export function* planBuilds(pass: Pass): Iterable<Finding> {
  for (const diskimage of pass.survey.diskimages.values()) {
    const building = diskimage.builds.filter(({ state }) => state === 'building');
    for (const { id } of building) {
      const reason = 'it is being built, and nobody follows it: its manager ended, or its job was lost';
      yield* stepOfRecord(pass, `build ${id}`, id, { act: 'resume-build', imageId: id, reason });
    }
    const [current] = building;
    if (diskimage.entry === undefined) continue;
    if (current === undefined) yield* planNewBuild(pass, diskimage, diskimage.entry);
    else if (pass.world.demanded.has(diskimage.name)) {
      const reason = `somebody asked for a build; it begins when ${current.id} has ended`;
      yield { subject: `diskimage ${diskimage.name}`, reason };
    }
  }
}

function* planNewBuild(pass: Pass, diskimage: SurveyedDiskImage, entry: ManagedDiskImage): Iterable<Finding> {
  const { name } = diskimage;
  const subject = `diskimage ${name}`;
  const { now, demanded, offered } = pass.world;
  const cron = pass.crons.get(entry.rebuildCron ?? '');
  if (cron instanceof Error) {
    const reason = `rebuild-cron "${entry.rebuildCron}" is no cron expression: ${cron.message} Correct it.`;
    yield { subject, reason };
  }
  const isDemanded = demanded.has(name);
  const occasions = isDemanded
    ? [{ at: now, reason: 'somebody asked for it' }]
    : [...occasionsToBuild(pass, diskimage, entry)];
  const due = occasions.find(({ at }) => at <= now);
  if (due === undefined) {
    if (entry.pause) return;
    for (const { at, reason } of occasions) yield { diskimage: name, at, reason };
    if (entry.followsZuul === true) yield { subject, reason: whyNothingIsDue(pass, diskimage) };
    return;
  }
  const { reason } = due;
  if (entry.pause && !isDemanded) {
    yield { subject, reason: `it is paused; otherwise it would be built: ${reason}` };
    return;
  }
  if (!offered.builds.has(name)) {
    yield { subject, reason: `no builder offers image-build:${name}; it would be built: ${reason}` };
    return;
  }
  const failures = failuresInARow(diskimage.builds, entry.digest);
  const until = retryTime(failures, pass.timing);
  if (until > now && !isDemanded) {
    yield {
      subject,
      reason: `${failuresInWords(failures.length)}; it is built again later: ${reason}`,
      until,
    };
    return;
  }
  yield { act: 'build', diskimage: name, reason };
}

/** Of a disk image that Zuul builds. */
function whyNothingIsDue({ world }: Pass, { name, builds }: SurveyedDiskImage): string {
  if (!world.offered.builds.has(name)) {
    return `no builder offers image-build:${name}, so that none looks what Zuul has built`;
  }
  const next = 'builders take the next build of Zuul on their own';
  return builds.some(({ state }) => state === 'ready') ? next : `there is no ready build of it; ${next}`;
}
