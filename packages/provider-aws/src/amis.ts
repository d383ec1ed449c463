import type { DescribeImagesRequest, Filter, Image, Snapshot, Tag } from '@aws-sdk/client-ec2';
import { PAGE_SIZES } from '@nodepool-builder/image-builder/internal';
import { IMAGE_TAGS, poll, unlessAbsent } from '@nodepool-builder/image-builder/plugin';
import { awsCode } from './aws-error.ts';
import type { AwsRegion } from './aws-session.ts';

/** Max seconds by which an AWS list lags behind. */
const LAG = 120;

/** Converts AWS tags to an object. */
export function readTags(tags: readonly Tag[] | undefined): Record<string, string> {
  return Object.fromEntries((tags ?? []).map(({ Key = '', Value = '' }) => [Key, Value]));
}

/** Converts an object to AWS tags. */
export function toTags(tags: Readonly<Record<string, string>>): { Key: string; Value: string }[] {
  return Object.entries(tags).map(([Key, Value]) => ({ Key, Value }));
}

/** Builds a filter for exact values, which may contain wildcards. */
export function exactFilter(Name: string, values: readonly string[]): { Name: string; Values: string[] } {
  return { Name, Values: values.map((value) => value.replaceAll(/[*?\\]/g, String.raw`\$&`)) };
}

/** Lists this account's AMIs with a tag. */
export async function imagesWith(
  region: AwsRegion,
  tag: keyof typeof IMAGE_TAGS,
  value: string,
  signal: AbortSignal,
): Promise<Image[]> {
  const Filters = [exactFilter(`tag:${IMAGE_TAGS[tag]}`, [value])];
  return await listImages(region, { Owners: ['self'], Filters }, signal);
}

/** Lists AMIs from all pages. */
export async function listImages(
  region: AwsRegion,
  query: DescribeImagesRequest,
  signal: AbortSignal,
): Promise<Image[]> {
  return await region.list(
    'DescribeImages',
    (page) => region.ec2(signal).describeImages({ ...query, ...page }),
    ({ Images }) => Images,
    // AWS rejects a page size in a query by ids.
    query.ImageIds === undefined ? { pageSizes: PAGE_SIZES } : {},
  );
}

/** Lists this account's snapshots with a tag. */
export async function snapshotsWith(
  region: AwsRegion,
  tag: keyof typeof IMAGE_TAGS,
  value: string,
  signal: AbortSignal,
): Promise<Snapshot[]> {
  return await listSnapshots(region, [exactFilter(`tag:${IMAGE_TAGS[tag]}`, [value])], signal);
}

/** Lists this account's snapshots that pass the filters, from all pages. */
export async function listSnapshots(
  region: AwsRegion,
  Filters: Filter[],
  signal: AbortSignal,
): Promise<Snapshot[]> {
  return await region.list(
    'DescribeSnapshots',
    (page) => region.ec2(signal).describeSnapshots({ OwnerIds: ['self'], Filters, ...page }),
    ({ Snapshots }) => Snapshots,
    { pageSizes: PAGE_SIZES },
  );
}

/** Returns the snapshot ids of an AMI. */
export function snapshotsOf({ BlockDeviceMappings: mappings = [] }: Image): string[] {
  return mappings.flatMap(({ Ebs }) => Ebs?.SnapshotId ?? []);
}

/** Returns an AMI by id; undefined if it does not exist. */
export async function getImage(
  region: AwsRegion,
  id: string,
  signal: AbortSignal,
): Promise<Image | undefined> {
  const images = await listImages(region, { ImageIds: [id] }, signal).catch(unlessAbsent);
  return images?.find(({ State }) => State !== 'deregistered');
}

/** Deregisters an AMI, then deletes its snapshots. Missing resources are not an error. */
export async function removeImage(region: AwsRegion, image: Image, signal: AbortSignal): Promise<void> {
  const { ImageId } = image;
  await region.ec2(signal).deregisterImage({ ImageId }).catch(unlessAbsent);
  for (const id of snapshotsOf(image)) await removeSnapshot(region, id, signal);
}

/** Deletes a snapshot. Retries until AWS has noticed that the AMI which used the snapshot is gone. */
export async function removeSnapshot(region: AwsRegion, id: string, signal: AbortSignal): Promise<void> {
  const remove = async (): Promise<true | undefined> => {
    try {
      await region.ec2(signal).deleteSnapshot({ SnapshotId: id }).catch(unlessAbsent);
      return true;
    } catch (error) {
      if (awsCode(error) !== 'InvalidSnapshot.InUse') throw error;
      const users = await usersOf(region, id, signal);
      if (users.length > 0) throw error;
      return undefined;
    }
  };
  const subject = `snapshot ${id} in ${region.name}`;
  await poll(remove, { subject, timeout: LAG, interval: 5, signal });
}

/** Lists this account's AMIs that use a snapshot. */
export async function usersOf(region: AwsRegion, id: string, signal: AbortSignal): Promise<Image[]> {
  const Filters = [{ Name: 'block-device-mapping.snapshot-id', Values: [id] }];
  return await listImages(region, { Owners: ['self'], Filters }, signal);
}
