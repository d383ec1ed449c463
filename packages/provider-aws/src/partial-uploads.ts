import type { Image, Snapshot } from '@aws-sdk/client-ec2';
import { readImageTags } from '@nodepool-builder/image-builder/internal';
import type { UploadPart } from '@nodepool-builder/image-builder/plugin';
import {
  getImage,
  imagesWith,
  readTags,
  removeImage,
  removeSnapshot,
  snapshotsOf,
  snapshotsWith,
  usersOf,
} from './amis.ts';
import type { AwsRegion } from './aws-session.ts';

/** Lists a provider's incomplete AMIs and copies, and snapshots that no AMI uses. */
export async function listParts(
  provider: string,
  regions: readonly [AwsRegion, ...AwsRegion[]],
  signal: AbortSignal,
): Promise<readonly UploadPart[]> {
  const parts: UploadPart[] = [];
  const images = await Promise.all(
    regions.map(async (region) => await imagesWith(region, 'provider', provider, signal)),
  );
  const whole = new Set(images[0]?.flatMap((image) => uploadOf(image) ?? []));
  for (const [index, region] of regions.entries()) {
    const there = images[index] ?? [];
    const used = new Set(there.flatMap(snapshotsOf));
    const finished = new Set<string>();
    for (const image of there) {
      const uploadId = uploadOf(image);
      if (uploadId === undefined) continue;
      if (image.State === 'available' && whole.has(uploadId)) finished.add(uploadId);
      else parts.push(imagePart(region, image, uploadId));
    }
    for (const snapshot of await snapshotsWith(region, 'provider', provider, signal)) {
      const { SnapshotId: id = '' } = snapshot;
      const uploadId = uploadOf(snapshot);
      if (uploadId === undefined || used.has(id)) continue;
      // The snapshots of an AMI that is still being copied are unknown.
      if (whole.has(uploadId) && !finished.has(uploadId)) continue;
      if ((await usersOf(region, id, signal)).length > 0) continue;
      parts.push(snapshotPart(region, snapshot, uploadId));
    }
  }
  return parts;
}

function uploadOf({ Tags }: Image | Snapshot): string | undefined {
  return readImageTags(readTags(Tags))?.uploadId;
}

function imagePart(region: AwsRegion, image: Image, uploadId: string): UploadPart {
  const { ImageId: id = '', State: state } = image;
  return {
    uploadId,
    subject: `AMI ${id} in ${region.name} (${state})`,
    changedAt: new Date(image.CreationDate ?? 0),
    async remove(signal) {
      const now = await getImage(region, id, signal);
      if (now === undefined || now.State !== state) return false;
      await removeImage(region, now, signal);
      return true;
    },
  };
}

function snapshotPart(region: AwsRegion, snapshot: Snapshot, uploadId: string): UploadPart {
  const { SnapshotId: id = '', State: state } = snapshot;
  return {
    uploadId,
    subject: `snapshot ${id} in ${region.name} (${state})`,
    changedAt: snapshot.StartTime ?? new Date(0),
    async remove(signal) {
      const all = await snapshotsWith(region, 'uploadId', uploadId, signal);
      const now = all.find(({ SnapshotId }) => SnapshotId === id);
      if (now?.State !== state || (await usersOf(region, id, signal)).length > 0) return false;
      await removeSnapshot(region, id, signal);
      return true;
    },
  };
}
