import type { Build } from '../records.ts';
import { buildDateOf, type Dated, newestFirst } from './age.ts';
import { failuresInARow, failuresInWords, retryTime } from './back-off.ts';
import { type Finding, type Pass, stepOfRecord } from './pass.ts';
import { type Place, pausedBy, type Use } from './places.ts';

/** Follows uploads that nobody follows, and begins those that providers lack. */
export function* planUploads(pass: Pass): Iterable<Finding> {
  for (const place of pass.survey.places) {
    for (const { id, state } of place.uploads) {
      if (state !== 'uploading') continue;
      const reason = 'it is being uploaded, and nobody follows it: its manager ended, or its job was lost';
      yield* stepOfRecord(pass, `upload ${id}`, id, { act: 'resume-upload', uploadId: id, reason });
    }
    if (place.use === undefined) continue;
    const wanted = pass.survey.diskimages.get(place.use.diskimage.name)?.good[0];
    if (wanted !== undefined && lacks(pass, place, wanted)) {
      yield planNewUpload(pass, place, place.use, wanted);
    }
  }
}

/** Whether a place lacks a build, and is not paused. */
export function needsUpload(pass: Pass, place: Place, wanted: Build): boolean {
  return place.use !== undefined && pausedBy(place.use) === undefined && lacks(pass, place, wanted);
}

function lacks({ survey }: Pass, place: Place, wanted: Build): boolean {
  const [best] = place.good;
  // A newer one may be there whose file is gone: the newest on disk would only be deleted again.
  if (best !== undefined && !isOlder(buildDateOf(best, survey.builds), wanted)) return false;
  return !place.uploads.some(({ state, imageId }) => state === 'uploading' && imageId === wanted.id);
}

function isOlder(one: Dated, other: Dated): boolean {
  return newestFirst([one, other], (each) => each)(one, other) > 0;
}

function planNewUpload({ world, timing }: Pass, place: Place, use: Use, wanted: Build): Finding {
  const { provider, imageName } = place;
  const subject = `provider ${provider}: image ${imageName}`;
  const reason = `${wanted.id} is the newest build, and it is not there`;
  const paused = pausedBy(use);
  if (paused !== undefined) return { subject, reason: `${reason}; ${paused} is paused` };
  const other = place.uploads.find(({ state }) => state === 'uploading');
  if (other !== undefined) {
    return { subject, reason: `${reason}; its upload begins when that of ${other.imageId} has ended` };
  }
  if (!world.offered.uploads.has(wanted.id)) {
    return { subject, reason: `${reason}; no builder offers image-upload:${wanted.id}` };
  }
  const failures = failuresInARow(place.uploads);
  const until = retryTime(failures, timing);
  if (until > world.now) {
    return { subject, reason: `${reason}; ${failuresInWords(failures.length)}, the next comes later`, until };
  }
  return { act: 'upload', imageId: wanted.id, diskimage: wanted.diskimage, provider, imageName, reason };
}
