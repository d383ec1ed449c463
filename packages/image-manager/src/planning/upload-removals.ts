import type { Upload } from '../records.ts';
import { type Finding, type Pass, stepOfRecord } from './pass.ts';
import { type Place, pausedBy, type Use } from './places.ts';
import type { Step } from './step.ts';
import { keptOf } from './survey.ts';

/**
 * Removes from providers what is not needed any more. The last good upload of a place that is configured never
 * goes, and nothing ready goes from where there is no good one.
 */
export function* planUploadRemovals(pass: Pass): Iterable<Finding> {
  for (const place of pass.survey.places) {
    if (!place.providerConfigured) {
      yield* waitForProvider(place);
      continue;
    }
    for (const upload of place.uploads) {
      const step = removalOf(upload, place);
      if (step !== undefined) yield* stepOfRecord(pass, `upload ${upload.id}`, upload.id, step);
    }
  }
}

function* waitForProvider({ provider, imageName, uploads }: Place): Iterable<Finding> {
  const ids = uploads.filter(mayBeThere).map(({ id }) => id);
  if (ids.length === 0) return;
  yield {
    subject: `provider ${provider}: image ${imageName}`,
    reason: `the provider is not configured, so nobody holds the credentials to remove what is there; put it back or forget ${ids.join(', ')}`,
  };
}

function mayBeThere({ state, leftovers }: Upload): boolean {
  return state === 'ready' || state === 'deleting' || (state === 'failed' && leftovers);
}

function removalOf(upload: Upload, place: Place): Step | undefined {
  const uploadId = upload.id;
  if (upload.state === 'deleting') {
    return { act: 'delete-upload', uploadId, reason: 'its deletion has begun and not ended' };
  }
  if (upload.state === 'failed' && upload.leftovers) {
    return { act: 'discard', uploadId, reason: 'it failed, and the provider may hold what it left' };
  }
  if (upload.state !== 'ready') return undefined;
  const reason = place.use === undefined ? whyNotConfigured(place) : whyReplaced(upload, place, place.use);
  return reason === undefined ? undefined : { act: 'delete-upload', uploadId, reason };
}

function whyNotConfigured({ provider, imageName }: Place): string {
  return `the configuration has no image ${imageName} for provider ${provider} any more`;
}

function whyReplaced(upload: Upload, { good }: Place, use: Use): string | undefined {
  const [best] = good;
  if (best === undefined) return undefined;
  if (upload.diskimage !== use.diskimage.name) {
    return `the image is of diskimage ${use.diskimage.name} now, and ${best.imageId} is there`;
  }
  const rank = good.indexOf(upload) + 1;
  if (rank === 0) return `its build, ${upload.imageId}, was withdrawn, and ${best.imageId} is there`;
  const keep = keptOf(use.diskimage);
  if (rank <= keep || pausedBy(use) !== undefined) return undefined;
  return `it is number ${rank} of the ready ones there, and keep is ${keep}`;
}
