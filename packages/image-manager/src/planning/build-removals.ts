import type { Build } from '../records.ts';
import { type Finding, type Pass, stepOfRecord } from './pass.ts';
import type { Place } from './places.ts';
import { keptOf, type SurveyedDiskImage } from './survey.ts';

/** Removes from the builders' disks what is not needed any more; never the last build of a configured disk image. */
export function* planBuildRemovals(pass: Pass): Iterable<Finding> {
  for (const diskimage of pass.survey.diskimages.values()) {
    for (const build of diskimage.builds) {
      const reason = whyNotNeeded(build, diskimage);
      if (reason !== undefined) yield* planRemoval(pass, build, reason);
    }
  }
}

function* planRemoval(pass: Pass, { id }: Build, reason: string): Iterable<Finding> {
  const uploading = pass.survey.uploadsOf.get(id)?.find(({ state }) => state === 'uploading');
  const subject = `build ${id}`;
  if (uploading === undefined) {
    yield* stepOfRecord(pass, subject, id, { act: 'delete-build', imageId: id, reason });
  } else {
    yield { subject, reason: `${reason}; it is deleted when its upload ${uploading.id} has ended` };
  }
}

function whyNotNeeded(build: Build, diskimage: SurveyedDiskImage): string | undefined {
  if (build.state === 'deleting') return 'its deletion has begun and not ended';
  if (build.state !== 'ready') return undefined;
  const { name, entry, good, builds, places } = diskimage;
  if (entry === undefined) return `the configuration has no diskimage ${name} any more`;
  const newestOnDisk = good[0] ?? builds.find(({ state }) => state === 'ready');
  if (build === newestOnDisk) return undefined;
  if (build.withdrawn) {
    const isNeeded = places.some((place) => isAllThatIsIn(place, build));
    return isNeeded ? undefined : 'it was withdrawn, and no provider depends on it';
  }
  const rank = good.indexOf(build) + 1;
  if (rank <= keptOf(entry) || entry.pause) return undefined;
  return `it is number ${rank} of the ready ones on disk, and keep is ${keptOf(entry)}`;
}

function isAllThatIsIn({ uploads }: Place, { id }: Build): boolean {
  const ready = uploads.filter(({ state }) => state === 'ready');
  return ready.length === 1 && ready[0]?.imageId === id;
}
