import type { Upload } from '../records.ts';
import { type Pass, type PlanItem, stepOfRecord } from './pass.ts';
import type { Step } from './plan-types.ts';
import { keptOf } from './survey.ts';
import { type ImageBinding, pausedBy, type Target } from './targets.ts';

/**
 * Plans the deletion of uploads that are no longer needed. The last good upload of a configured target stays; in a
 * target without a good upload, all ready uploads stay.
 */
export function* planUploadRemovals(pass: Pass): Iterable<PlanItem> {
  for (const target of pass.survey.targets) {
    if (!target.providerConfigured) {
      yield* waitForProvider(target);
      continue;
    }
    for (const upload of target.uploads) {
      const step = removalOf(upload, target);
      if (step !== undefined) yield* stepOfRecord(pass, `upload ${upload.id}`, upload.id, step);
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
  return state === 'ready' || state === 'deleting' || (state === 'failed' && leftovers);
}

function removalOf(upload: Upload, target: Target): Step | undefined {
  const uploadId = upload.id;
  if (upload.state === 'deleting') {
    return { kind: 'delete-upload', uploadId, reason: 'its deletion is not finished' };
  }
  if (upload.state === 'failed' && upload.leftovers) {
    return { kind: 'discard', uploadId, reason: 'it failed, and the provider may hold parts of it' };
  }
  if (upload.state !== 'ready') return undefined;
  const reason =
    target.binding === undefined ? whyNotConfigured(target) : whyReplaced(upload, target, target.binding);
  return reason === undefined ? undefined : { kind: 'delete-upload', uploadId, reason };
}

function whyNotConfigured({ provider, imageName }: Target): string {
  return `the configuration no longer has image ${imageName} of provider ${provider}`;
}

function whyReplaced(upload: Upload, { good }: Target, binding: ImageBinding): string | undefined {
  const [best] = good;
  if (best === undefined) return undefined;
  if (upload.diskimage !== binding.diskimage.name) {
    return `the image is now of diskimage ${binding.diskimage.name}, and the provider has ${best.imageId}`;
  }
  const rank = good.indexOf(upload) + 1;
  if (rank === 0) return `its build, ${upload.imageId}, was withdrawn, and the provider has ${best.imageId}`;
  const keep = keptOf(binding.diskimage);
  if (rank <= keep || pausedBy(binding) !== undefined) return undefined;
  return `it is number ${rank} of the ready uploads, and keep is ${keep}`;
}
