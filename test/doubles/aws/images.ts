import type {
  CopyImageRequest,
  DeregisterImageRequest,
  DescribeImagesRequest,
  Image,
  ModifyImageAttributeRequest,
  RegisterImageRequest,
} from '@aws-sdk/client-ec2';
import { type ImageState, passes, tagsFor } from './cloud-state.ts';
import { AwsError } from './model.ts';
import type { Region } from './region.ts';
import { allBlocks } from './snapshots.ts';

const NAME = /^[A-Za-z0-9()[\] ./\-'@_]{3,128}$/;

const ARCHITECTURES: readonly string[] = ['arm64', 'i386', 'x86_64', 'x86_64_mac', 'arm64_mac'];

/** Operations of EC2 on AMIs. */
export const IMAGE_OPERATIONS = {
  RegisterImage(region: Region, input: RegisterImageRequest) {
    const {
      Name: name = '',
      Architecture: architecture = 'i386',
      BlockDeviceMappings: mappings = [],
    } = input;
    checkName(region, name);
    if (!ARCHITECTURES.includes(architecture)) {
      throw new AwsError('InvalidParameterValue', `The architecture ${architecture} is invalid`);
    }
    const snapshots = mappings.flatMap(({ Ebs }) => Ebs?.SnapshotId ?? []);
    if (snapshots.length === 0) {
      throw new AwsError('InvalidBlockDeviceMapping', 'The block device mapping has no root snapshot');
    }
    if (!mappings.some(({ DeviceName: device }) => device === input.RootDeviceName)) {
      throw new AwsError('InvalidParameterValue', `The root device ${input.RootDeviceName} is not mapped`);
    }
    for (const { Ebs } of mappings) {
      const snapshot = region.snapshots.get(Ebs?.SnapshotId);
      if (snapshot.state !== 'completed') {
        throw new AwsError('IncorrectState', `Snapshot ${snapshot.id} is not in the state 'completed'`);
      }
      if (Ebs?.VolumeSize !== undefined && Ebs.VolumeSize < snapshot.volumeSize) {
        throw new AwsError('InvalidParameterValue', `The volume is smaller than snapshot ${snapshot.id}`);
      }
    }
    const image = region.images.add({
      name,
      description: input.Description,
      architecture,
      registration: input,
      snapshots,
      owner: region.options.account,
      isPublic: false,
      tags: tagsFor('image', input.TagSpecifications),
      state: 'available',
      pendingLists: 0,
      sharedWith: new Set(),
    });
    return { ImageId: image.id };
  },
  DescribeImages(region: Region, input: DescribeImagesRequest) {
    const { ImageIds: ids, Owners: owners, IncludeDeprecated: withDeprecated = false } = input;
    const { account } = region.options;
    const listed = ids ? ids.map((id) => region.images.get(id)) : region.images.list();
    const found = listed.filter(
      (image) =>
        (image.owner === account || image.isPublic) &&
        (owners === undefined ||
          owners.some((owner) => image.owner === (owner === 'self' ? account : owner))) &&
        (withDeprecated ||
          image.owner === account ||
          image.deprecatedAt === undefined ||
          image.deprecatedAt > new Date()) &&
        passes(image, input.Filters, {
          name: image.name,
          state: image.state,
          architecture: image.architecture,
          'image-id': image.id,
          'block-device-mapping.snapshot-id': image.snapshots[0],
          'owner-id': image.owner,
          'is-public': String(image.isPublic),
          description: image.description,
          'image-type': 'machine',
          'root-device-type': 'ebs',
          'virtualization-type': 'hvm',
          hypervisor: 'xen',
          'creation-date': image.createdAt.toISOString(),
        }),
    );
    const { page, next } = region.page(found, input.MaxResults, input.NextToken);
    return { Images: page.map(describe), NextToken: next };
  },
  DeregisterImage(region: Region, { ImageId: id }: DeregisterImageRequest) {
    const image = region.images.get(id);
    if (image.owner !== region.options.account) {
      throw new AwsError('AuthFailure', `Not authorized for images: [${image.id}]`, 403);
    }
    region.images.delete(image.id);
    return { Return: true };
  },
  CopyImage(region: Region, input: CopyImageRequest) {
    const { Name: name = '', SourceImageId: id, SourceRegion: source = '' } = input;
    const from = region.other(source);
    const image = from.images.get(id);
    if (image.state !== 'available') {
      throw new AwsError('InvalidRequest', `The image ${image.id} is not in the state 'available'`);
    }
    checkName(region, name);
    const kinds = ['image', 'snapshot'];
    const snapshots = image.snapshots.map((snapshotId) => {
      const snapshot = from.snapshots.get(snapshotId);
      const tags = tagsFor('snapshot', input.TagSpecifications, kinds);
      const description = `Copied for DestinationAmi from SourceAmi ${image.id}`;
      return region.snapshots.add({
        volumeSize: snapshot.volumeSize,
        description,
        tags,
        state: 'pending',
        pendingLists: 0,
        isComplete: true,
        blocks: allBlocks(snapshot),
        sharedWith: new Set(),
      }).id;
    });
    const { pendingLists } = region.options;
    const copy = region.images.add({
      ...image,
      name,
      description: input.Description,
      snapshots,
      tags: tagsFor('image', input.TagSpecifications, kinds),
      state: 'pending',
      pendingLists,
      sharedWith: new Set(),
    });
    return { ImageId: copy.id };
  },
  ModifyImageAttribute(region: Region, input: ModifyImageAttributeRequest) {
    const image = region.images.get(input.ImageId);
    for (const { UserId: id } of input.LaunchPermission?.Add ?? []) if (id) image.sharedWith.add(id);
    const { ImdsSupport: imds } = input;
    if (imds?.Value !== undefined)
      image.registration = { ...image.registration, ImdsSupport: imds.Value as 'v2.0' };
    return {};
  },
};

/** @throws AwsError for a malformed AMI name, or one in use */
export function checkName(region: Region, name: string): void {
  if (!NAME.test(name)) {
    const reason = `AMI names must be between 3 and 128 characters long, and may contain letters, numbers, '(', ')', '.', '-', '/' and '_'`;
    throw new AwsError('InvalidAMIName.Malformed', reason);
  }
  const other = region.images.all().find((image) => image.name === name);
  if (other === undefined) return;
  throw new AwsError('InvalidAMIName.Duplicate', `AMI name ${name} is already in use by AMI ${other.id}`);
}

function describe(image: ImageState): Image {
  if (image.state === 'pending' && image.pendingLists-- <= 0) image.state = 'available';
  const { registration } = image;
  return {
    ImageId: image.id,
    Name: image.name,
    ...(image.description !== undefined && { Description: image.description }),
    State: image.state,
    Architecture: image.architecture as Image['Architecture'],
    CreationDate: image.createdAt.toISOString(),
    OwnerId: image.owner,
    Public: image.isPublic,
    ...(image.platform !== undefined && { Platform: image.platform }),
    ImageType: 'machine',
    RootDeviceType: 'ebs',
    RootDeviceName: registration.RootDeviceName,
    VirtualizationType: 'hvm',
    Hypervisor: 'xen',
    EnaSupport: registration.EnaSupport,
    BootMode: registration.BootMode,
    ImdsSupport: registration.ImdsSupport,
    ...(image.deprecatedAt !== undefined && { DeprecationTime: image.deprecatedAt.toISOString() }),
    BlockDeviceMappings: image.snapshots.map((id, index) => ({
      ...registration.BlockDeviceMappings?.[index],
      Ebs: { ...registration.BlockDeviceMappings?.[index]?.Ebs, SnapshotId: id },
    })),
    Tags: image.tags,
  };
}
