import type { Build } from '../records.ts';
import { buildDateOf, type Dated, newestFirst } from './age.ts';
import { failuresInARow, failuresInWords, retryTime } from './back-off.ts';
import { type Pass, type PlanItem, stepOfRecord } from './pass.ts';
import { type ImageBinding, pausedBy, type Target } from './targets.ts';

/** Plans the uploads that providers lack, and resumes uploads without a task. */
export function* planUploads(pass: Pass): Iterable<PlanItem> {
  for (const target of pass.survey.targets) {
    for (const { id, state } of target.uploads) {
      if (state !== 'uploading') continue;
      const reason = 'it is being uploaded, but has no task: its manager ended, or its job was lost';
      yield* stepOfRecord(pass, `upload ${id}`, id, { kind: 'resume-upload', uploadId: id, reason });
    }
    if (target.binding === undefined) continue;
    const wanted = pass.survey.diskimages.get(target.binding.diskimage.name)?.good[0];
    if (wanted !== undefined && lacks(pass, target, wanted)) {
      yield planNewUpload(pass, target, target.binding, wanted);
    }
  }
}

/** True if a target lacks a build and is not paused. */
export function needsUpload(pass: Pass, target: Target, wanted: Build): boolean {
  return (
    target.binding !== undefined && pausedBy(target.binding) === undefined && lacks(pass, target, wanted)
  );
}

function lacks({ survey }: Pass, target: Target, wanted: Build): boolean {
  const [best] = target.good;
  // The target may have a newer build whose file is gone. An older upload would be deleted again.
  if (best !== undefined && !isOlder(buildDateOf(best, survey.builds), wanted)) return false;
  return !target.uploads.some(({ state, imageId }) => state === 'uploading' && imageId === wanted.id);
}

function isOlder(one: Dated, other: Dated): boolean {
  return newestFirst([one, other], (each) => each)(one, other) > 0;
}

function planNewUpload(
  { observation, timing }: Pass,
  target: Target,
  binding: ImageBinding,
  wanted: Build,
): PlanItem {
  const { provider, imageName } = target;
  const subject = `provider ${provider}: image ${imageName}`;
  const reason = `the provider lacks the newest build, ${wanted.id}`;
  const paused = pausedBy(binding);
  if (paused !== undefined) return { subject, reason: `${reason}; ${paused} is paused` };
  const other = target.uploads.find(({ state }) => state === 'uploading');
  if (other !== undefined) {
    return { subject, reason: `${reason}; its upload starts after that of ${other.imageId}` };
  }
  if (!observation.offered.uploads.has(wanted.id)) {
    return { subject, reason: `${reason}; no builder offers image-upload:${wanted.id}` };
  }
  const failures = failuresInARow(target.uploads);
  const until = retryTime(failures, timing);
  if (until > observation.now) {
    return {
      subject,
      reason: `${reason}; ${failuresInWords(failures.length)}, the next follows later`,
      until,
    };
  }
  return { kind: 'upload', imageId: wanted.id, diskimage: wanted.diskimage, provider, imageName, reason };
}
