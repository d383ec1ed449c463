import type { Filter, Image, Snapshot, Tag } from '@aws-sdk/client-ec2';
import { IMAGE_TAGS, PAGE_SIZES, poll, unlessAbsent } from '@nodepool-builder/image-builder/module-kit';
import { awsCode } from './aws-error.ts';
import type { AwsRegion } from './aws-session.ts';

/** Seconds that a list of AWS may lag behind. */
const LAG = 120;

/** Tags as an object. */
export function readTags(tags: readonly Tag[] | undefined): Record<string, string> {
  return Object.fromEntries((tags ?? []).map(({ Key = '', Value = '' }) => [Key, Value]));
}

/** Tags as AWS takes them. */
export function toTags(tags: Readonly<Record<string, string>>): { Key: string; Value: string }[] {
  return Object.entries(tags).map(([Key, Value]) => ({ Key, Value }));
}

/** Filter for one tag. */
function tagFilter(name: string, value: string): { Name: string; Values: string[] } {
  return { Name: `tag:${name}`, Values: [value.replaceAll(/[*?\\]/g, String.raw`\$&`)] };
}

/** Lists the own AMIs with a tag. */
export async function imagesWith(
  region: AwsRegion,
  tag: keyof typeof IMAGE_TAGS,
  value: string,
  signal: AbortSignal,
): Promise<Image[]> {
  const Filters = [tagFilter(IMAGE_TAGS[tag], value)];
  return await listImages(region, { Owners: ['self'], Filters }, signal);
}

/** Lists AMIs, all pages of them. */
export async function listImages(
  region: AwsRegion,
  query: Parameters<AwsRegion['ec2']['describeImages']>[0] & object,
  signal: AbortSignal,
): Promise<Image[]> {
  return await region.list(
    'DescribeImages',
    signal,
    (page, options) => region.ec2.describeImages({ ...query, ...page }, options),
    ({ Images }) => Images,
    // AWS refuses a page size for a list of ids.
    query.ImageIds === undefined ? { pageSizes: PAGE_SIZES } : {},
  );
}

/** Lists the own snapshots with a tag. */
export async function snapshotsWith(
  region: AwsRegion,
  tag: keyof typeof IMAGE_TAGS,
  value: string,
  signal: AbortSignal,
): Promise<Snapshot[]> {
  return await listSnapshots(region, [tagFilter(IMAGE_TAGS[tag], value)], signal);
}

/** Lists the own snapshots that pass filters, all pages of them. */
export async function listSnapshots(
  region: AwsRegion,
  Filters: Filter[],
  signal: AbortSignal,
): Promise<Snapshot[]> {
  return await region.list(
    'DescribeSnapshots',
    signal,
    (page, options) => region.ec2.describeSnapshots({ OwnerIds: ['self'], Filters, ...page }, options),
    ({ Snapshots }) => Snapshots,
    { pageSizes: PAGE_SIZES },
  );
}

/** The snapshots of an AMI. */
export function snapshotsOf({ BlockDeviceMappings: mappings = [] }: Image): string[] {
  return mappings.flatMap(({ Ebs }) => Ebs?.SnapshotId ?? []);
}

/** An AMI by its id. Undefined if it does not exist. */
export async function getImage(
  region: AwsRegion,
  id: string,
  signal: AbortSignal,
): Promise<Image | undefined> {
  const images = await listImages(region, { ImageIds: [id] }, signal).catch(unlessAbsent);
  return images?.find(({ State }) => State !== 'deregistered');
}

/** Deregisters an AMI, then deletes its snapshots. What is missing is no error. */
export async function removeImage(region: AwsRegion, image: Image, signal: AbortSignal): Promise<void> {
  const { ImageId } = image;
  await region
    .call('DeregisterImage', signal, (options) => region.ec2.deregisterImage({ ImageId }, options))
    .catch(unlessAbsent);
  for (const id of snapshotsOf(image)) await removeSnapshot(region, id, signal);
}

/** Deletes a snapshot. AWS takes a moment until it knows that the AMI which used it is gone. */
export async function removeSnapshot(region: AwsRegion, id: string, signal: AbortSignal): Promise<void> {
  const remove = async (): Promise<true | undefined> => {
    try {
      await region
        .call('DeleteSnapshot', signal, (options) => region.ec2.deleteSnapshot({ SnapshotId: id }, options))
        .catch(unlessAbsent);
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

/** The own AMIs that use a snapshot. */
export async function usersOf(region: AwsRegion, id: string, signal: AbortSignal): Promise<Image[]> {
  const Filters = [{ Name: 'block-device-mapping.snapshot-id', Values: [id] }];
  return await listImages(region, { Owners: ['self'], Filters }, signal);
}
