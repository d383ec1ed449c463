import type { Image, RegisterImageRequest } from '@aws-sdk/client-ec2';
import { type CloudClaim, cloudError, poll } from '@nodepool-builder/image-builder/plugin';
import { imagesWith, listImages, snapshotsOf } from './amis.ts';
import { awsCode } from './aws-error.ts';
import type { AwsRegion, AwsSession } from './aws-session.ts';
import { type AwsUpload, architectureOf, FORBIDDEN, MAX_NAME_LENGTH, uploadTags } from './aws-upload.ts';

/** Root device name from the AWS documentation. */
const ROOT = '/dev/sda1';

/** Registers an AMI from a snapshot, or finds the AMI that an earlier request registered. @returns its id */
export async function registerImage(upload: AwsUpload, snapshotId: string): Promise<string> {
  const { region, entry, request, signal } = upload;
  const name = upload.name.replaceAll(FORBIDDEN, '-').padEnd(3, '-');
  const second = `${name.slice(0, MAX_NAME_LENGTH - request.uploadId.length - 1)}-${request.uploadId}`;
  for (const Name of [name.slice(0, MAX_NAME_LENGTH), second.replaceAll(FORBIDDEN, '-')]) {
    try {
      const input = { Name, ...registration(upload, snapshotId) };
      return (await region.ec2(signal).registerImage(input)).ImageId ?? '';
    } catch (error) {
      if (awsCode(error) !== 'InvalidAMIName.Duplicate') throw error;
      const own = await findByName(upload, Name, snapshotId);
      if (own !== undefined) return own;
    }
  }
  throw cloudError('conflict', `provider ${entry.name}`, `the AMI name ${name} is in use`);
}

/**
 * Finds the AMI with a name if an earlier request of this upload registered it. Retries, because a list may not contain
 * it yet.
 */
async function findByName(upload: AwsUpload, name: string, snapshotId: string): Promise<string | undefined> {
  const { region, entry, signal, interval } = upload;
  const query = { Owners: ['self'], Filters: [{ Name: 'name', Values: [name] }] };
  const look = async (): Promise<Image | undefined> => (await listImages(region, query, signal))[0];
  const subject = `provider ${entry.name}: AMI ${name}`;
  const image = await poll(look, { subject, timeout: entry['image-import-timeout'], interval, signal });
  return snapshotsOf(image).includes(snapshotId) ? image.ImageId : undefined;
}

function registration(upload: AwsUpload, SnapshotId: string): Omit<RegisterImageRequest, 'Name'> {
  const { entry, request } = upload;
  return {
    Description: `nodepool-builder: ${request.imageId}`,
    Architecture: architectureOf(entry, request) as RegisterImageRequest['Architecture'],
    RootDeviceName: ROOT,
    VirtualizationType: 'hvm',
    EnaSupport: entry['ena-support'],
    ...(entry['boot-mode'] && { BootMode: entry['boot-mode'] }),
    ...(entry['imds-support'] && { ImdsSupport: entry['imds-support'] }),
    BlockDeviceMappings: [
      {
        DeviceName: ROOT,
        Ebs: {
          SnapshotId,
          VolumeType: entry['volume-type'],
          DeleteOnTermination: true,
          ...(entry['volume-size'] !== undefined && { VolumeSize: entry['volume-size'] }),
          ...(entry.iops !== undefined && { Iops: entry.iops }),
          ...(entry.throughput !== undefined && { Throughput: entry.throughput }),
        },
      },
    ],
    TagSpecifications: [{ ResourceType: 'image', Tags: uploadTags(entry, upload) }],
  };
}

/** An upload, with or without a file. */
type Distribution = CloudClaim & Pick<AwsUpload, 'region' | 'entry' | 'interval'>;

/** Waits until an AMI is usable, copies it to further regions, and shares all copies. */
export async function distributeImage(upload: Distribution, session: AwsSession, id: string): Promise<void> {
  const { region, entry } = upload;
  await waitForImage(upload, region, id);
  const copies = await Promise.all(
    (entry['copy-regions'] ?? []).map(async (name) => {
      const target = await session.open(name);
      const copy = await copyImage(upload, target, id);
      await waitForImage(upload, target, copy);
      return { target, copy };
    }),
  );
  for (const { target, copy } of [{ target: region, copy: id }, ...copies]) await share(upload, target, copy);
}

async function waitForImage(upload: Distribution, region: AwsRegion, id: string): Promise<void> {
  const { entry, signal, interval } = upload;
  const subject = `provider ${entry.name}: AMI ${id} in ${region.name}`;
  const look = async (): Promise<true | undefined> => {
    // Uses a filter, because an id that is not listed yet would be an error.
    const query = { Owners: ['self'], Filters: [{ Name: 'image-id', Values: [id] }] };
    const [image] = await listImages(region, query, signal);
    if (image?.State === 'failed' || image?.State === 'error' || image?.State === 'invalid') {
      throw cloudError('image-failed', subject, image.StateReason?.Message ?? 'AWS gives no reason');
    }
    return image?.State === 'available' ? true : undefined;
  };
  await poll(look, { subject, timeout: entry['image-import-timeout'], interval, signal });
}

/** Copies the AMI to another region, or finds the copy of an earlier attempt. */
async function copyImage(upload: Distribution, target: AwsRegion, id: string): Promise<string> {
  const { region, entry, request, signal } = upload;
  const [found] = await imagesWith(target, 'uploadId', request.uploadId, signal);
  if (found?.ImageId !== undefined) return found.ImageId;
  const tags = uploadTags(entry, upload);
  const input = {
    Name: `${upload.name.replaceAll(FORBIDDEN, '-').slice(0, MAX_NAME_LENGTH - 22)}-${id}`,
    SourceImageId: id,
    SourceRegion: region.name,
    // An AMI is copied once to each region, so the token makes a repeated request idempotent.
    ClientToken: `${id}-${target.name}`.slice(0, 64),
    Description: `nodepool-builder: ${request.imageId}`,
    TagSpecifications: (['image', 'snapshot'] as const).map((ResourceType) => ({ ResourceType, Tags: tags })),
  };
  return (await target.ec2(signal).copyImage(input)).ImageId ?? '';
}

async function share({ entry, signal }: Distribution, region: AwsRegion, id: string): Promise<void> {
  const accounts = (entry['share-accounts'] ?? []).map((account) => ({
    UserId: String(account).padStart(12, '0'),
  }));
  if (accounts.length === 0) return;
  await region.ec2(signal).modifyImageAttribute({ ImageId: id, LaunchPermission: { Add: accounts } });
}
