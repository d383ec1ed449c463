import type { Build, Upload } from '../records.ts';
import { failuresInARow, failuresInWords, retryTime, succeeded } from './back-off.ts';
import { type Pass, type PlanItem, type RecordStep, stepOfRecord, withoutBuilder } from './pass.ts';
import { type ImageBinding, keptOf, type Target } from './survey.ts';

/** Plans the uploads that providers lack, and resumes uploads without a task. */
export function* planUploads(pass: Pass): Iterable<PlanItem> {
  for (const target of pass.survey.targets) {
    for (const { id, state } of target.uploads) {
      if (state !== 'uploading') continue;
      const reason = 'it is being uploaded, but has no task: its manager ended, or its job was lost';
      yield* stepOfRecord(pass, { kind: 'resume-upload', id, reason });
    }
    if (target.binding === undefined) continue;
    const wanted = pass.survey.diskimages.get(target.binding.diskimage.name)?.good[0];
    if (wanted !== undefined && lacks(pass, target, wanted)) {
      yield planNewUpload(pass, target, target.binding, wanted);
    }
  }
}

/** Returns whether a target lacks a build and is not paused. */
export function needsUpload(pass: Pass, target: Target, wanted: Build): boolean {
  return target.binding !== undefined && target.binding.paused === undefined && lacks(pass, target, wanted);
}

function lacks({ survey }: Pass, target: Target, wanted: Build): boolean {
  const [best] = target.good;
  // The target may have a newer build whose file is gone. An older upload would then be deleted again.
  const age = survey.ages.get(best?.imageId ?? '');
  if (age !== undefined && age <= (survey.ages.get(wanted.id) ?? 0)) return false;
  return !target.uploads.some(({ state, imageId }) => state === 'uploading' && imageId === wanted.id);
}

function planNewUpload(pass: Pass, target: Target, binding: ImageBinding, wanted: Build): PlanItem {
  const { observation, timing } = pass;
  const { provider, imageName } = target;
  const subject = `provider ${provider}: image ${imageName}`;
  const reason = `the provider lacks the newest build, ${wanted.id}`;
  const { paused } = binding;
  if (paused !== undefined) return { subject, reason: `${reason}; ${paused}` };
  const other = target.uploads.find(({ state }) => state === 'uploading');
  if (other !== undefined) {
    return { subject, reason: `${reason}; its upload starts after the upload of ${other.imageId}` };
  }
  if (!observation.offered.uploads.has(wanted.id)) {
    return { subject, reason: `${reason}; ${withoutBuilder(pass, `image-upload:${wanted.id}`)}` };
  }
  const cancelled = target.uploads.find((upload) => upload.imageId === wanted.id)?.cancelledBy;
  if (cancelled !== undefined) {
    return {
      subject,
      reason: `${reason}; its upload was cancelled by ${cancelled}; the next build is uploaded`,
    };
  }
  const failures = failuresInARow(target.uploads).filter(({ cancelledBy }) => cancelledBy === undefined);
  const until = retryTime(failures, timing);
  if (until > observation.now) {
    return {
      subject,
      reason: `${reason}; ${failuresInWords(failures)}, the next follows later`,
      until,
    };
  }
  const { id: imageId, diskimage } = wanted;
  return { kind: 'upload', imageId, diskimage, provider, imageName, reason: whyUploaded(target) };
}

/** The `reason` in the record of a new upload. It must still be true once the image is ready. */
function whyUploaded({ good: [best], uploads }: Target): string {
  if (best !== undefined) return `it replaces ${best.imageId}`;
  return uploads.some(succeeded) ? 'the last image there was deleted or lost' : 'the first image there';
}

/**
 * Plans the deletion of uploads that are no longer needed. The last good upload of a configured target stays. In a
 * target without a good upload, all ready uploads stay. A missing upload is kept like a ready one, because its image
 * may be listed again. Uploads of one build count as one, because each of their images may be in use.
 */
export function* planUploadRemovals(pass: Pass): Iterable<PlanItem> {
  for (const target of pass.survey.targets) {
    if (!target.providerConfigured) {
      yield* waitForProvider(target);
      continue;
    }
    for (const upload of target.uploads) {
      const step = removalOf(upload, target, pass.survey.ages);
      if (step !== undefined) yield* stepOfRecord(pass, step);
    }
  }
}

function* waitForProvider({ provider, imageName, uploads }: Target): Iterable<PlanItem> {
  const ids = uploads.filter(mayBeThere).map(({ id }) => id);
  if (ids.length === 0) return;
  yield {
    subject: `provider ${provider}: image ${imageName}`,
    reason:
      'the provider is not configured, so that its credentials are missing; ' +
      `restore its entry to delete ${ids.join(', ')}`,
  };
}

function mayBeThere({ state, leftovers }: Upload): boolean {
  return ['ready', 'missing', 'deleting'].includes(state) || (state === 'failed' && leftovers);
}

function removalOf(
  upload: Upload,
  target: Target,
  ages: ReadonlyMap<string, number>,
): RecordStep | undefined {
  const { id } = upload;
  if (upload.state === 'failed' && upload.leftovers) {
    return { kind: 'discard', id, reason: 'it failed, and the provider may have parts of it' };
  }
  const reason = whyNotNeeded(upload, target, ages);
  return reason === undefined ? undefined : { kind: 'delete-upload', id, reason };
}

function whyNotNeeded(
  upload: Upload,
  { provider, imageName, binding, good }: Target,
  ages: ReadonlyMap<string, number>,
): string | undefined {
  const isReady = upload.state === 'ready';
  if (upload.state === 'deleting') return 'its deletion is not finished';
  if (!isReady && upload.state !== 'missing') return undefined;
  if (binding === undefined) {
    return `the configuration no longer has image ${imageName} of provider ${provider}`;
  }
  const [best] = good;
  if (best === undefined) return undefined;
  if (upload.diskimage !== binding.diskimage.name) {
    return `the image now belongs to diskimage ${binding.diskimage.name}, and the provider has ${best.imageId}`;
  }
  if (isReady && !good.includes(upload)) {
    return `its build, ${upload.imageId}, was withdrawn, and the provider has ${best.imageId}`;
  }
  const ageOf = ({ imageId }: Upload): number => ages.get(imageId) ?? 0;
  const newer = new Set(good.filter((other) => ageOf(other) < ageOf(upload)).map(({ imageId }) => imageId));
  const keep = keptOf(binding.diskimage);
  if (newer.size < keep || binding.paused !== undefined) return undefined;
  return `its build is number ${newer.size + 1} of those with ready uploads, and keep is ${keep}`;
}
