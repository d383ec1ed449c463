import type { Build, Upload } from '../records.ts';
import { type Finding, type Pass, stepOfRecord } from './pass.ts';
import { placeKey } from './places.ts';
import { keptOf, type Survey, type SurveyedDiskImage } from './survey.ts';

/** Removes from the builders' disks what is not needed any more; never the last build of a configured disk image. */
export function* planBuildRemovals(pass: Pass): Iterable<Finding> {
  for (const diskimage of pass.survey.diskimages.values()) {
    for (const build of diskimage.builds) {
      const reason = whyNotNeeded(build, diskimage, pass.survey);
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

function whyNotNeeded(build: Build, diskimage: SurveyedDiskImage, survey: Survey): string | undefined {
  if (build.state === 'deleting') return 'its deletion has begun and not ended';
  if (build.state !== 'ready') return undefined;
  const { name, entry, good, builds } = diskimage;
  if (entry === undefined) return `the configuration has no diskimage ${name} any more`;
  const newestOnDisk = good[0] ?? builds.find(({ state }) => state === 'ready');
  if (build === newestOnDisk) return undefined;
  if (build.withdrawn) {
    const uploads = survey.uploadsOf.get(build.id) ?? [];
    const isNeeded = uploads.some((upload) => isLastOfItsPlace(upload, survey));
    return isNeeded ? undefined : 'it was withdrawn, and no provider depends on it';
  }
  const rank = good.indexOf(build) + 1;
  if (rank <= keptOf(entry) || entry.pause) return undefined;
  return `it is number ${rank} of the ready ones on disk, and keep is ${keptOf(entry)}`;
}

function isLastOfItsPlace(upload: Upload, survey: Survey): boolean {
  const place = survey.places.get(placeKey(upload.provider, upload.imageName));
  if (upload.state !== 'ready' || place?.use === undefined) return false;
  return !place.uploads.some((other) => other.state === 'ready' && other !== upload);
}
