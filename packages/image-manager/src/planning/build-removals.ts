import type { Build } from '../records.ts';
import { type Pass, type PlanItem, stepOfRecord } from './pass.ts';
import { keptOf, type SurveyedDiskImage, type Target } from './survey.ts';

/** Plans the deletion of builds that are no longer needed, except the last build of a configured disk image. */
export function* planBuildRemovals(pass: Pass): Iterable<PlanItem> {
  for (const diskimage of pass.survey.diskimages.values()) {
    for (const build of diskimage.builds) {
      const reason = whyNotNeeded(build, diskimage);
      if (reason !== undefined) yield* planRemoval(pass, build, reason);
    }
  }
}

function* planRemoval(pass: Pass, { id }: Build, reason: string): Iterable<PlanItem> {
  const uploading = pass.survey.uploadsOf(id).find(({ state }) => state === 'uploading');
  if (uploading === undefined) {
    yield* stepOfRecord(pass, { kind: 'delete-build', id, reason });
  } else {
    yield { subject: `build ${id}`, reason: `${reason}; it is deleted after its upload ${uploading.id}` };
  }
}

function whyNotNeeded(build: Build, diskimage: SurveyedDiskImage): string | undefined {
  if (build.state === 'deleting') return 'its deletion is not finished';
  if (build.state !== 'ready') return undefined;
  const { name, entry, paused, good, builds, targets } = diskimage;
  if (entry === undefined) return `the configuration no longer has diskimage ${name}`;
  const newestOnDisk = good[0] ?? builds.find(({ state }) => state === 'ready');
  if (build === newestOnDisk) return undefined;
  if (build.withdrawn) {
    const isNeeded = targets.some((target) => isOnlyImageIn(target, build));
    return isNeeded ? undefined : 'it was withdrawn, and no provider needs it';
  }
  const rank = good.indexOf(build) + 1;
  if (rank <= keptOf(entry) || paused !== undefined) return undefined;
  return `it is number ${rank} of the ready builds, and keep is ${keptOf(entry)}`;
}

function isOnlyImageIn({ uploads }: Target, { id }: Build): boolean {
  const ready = uploads.filter(({ state }) => state === 'ready');
  return ready.length === 1 && ready[0]?.imageId === id;
}
