import type {
  BlockDeviceMapping,
  EbsBlockDevice,
  Image,
  InstanceTypeInfo,
  RunInstancesRequest,
} from '@aws-sdk/client-ec2';
import { ImageError, type LaunchRequest } from '@nodepool-builder/image-builder';
import type { LaunchRecord } from '@nodepool-builder/image-builder/internal';
import { poll, unlessAbsent } from '@nodepool-builder/image-builder/plugin';
import { exactFilter, listImages, toTags } from '../amis.ts';
import { awsCode } from '../aws-error.ts';
import { type Ec2Instance, getInstance, stateOf, stateReason } from './ec2-instance.ts';
import { type InstanceSite, resourceTags } from './launches.ts';
import { keepPasswordKey, newPasswordKey } from './windows-password.ts';

/** Default memory of an instance in MiB. */
const DEFAULT_MEMORY = 2048;

/** Seconds until all of AWS knows a new instance by its id. */
const LAG = 120;

/**
 * Launches an instance and waits until it boots. Requests that create something are not aborted, because a cleanup
 * needs the ids in their responses. The launch name is their client token, so a request that the SDK repeats creates
 * nothing twice.
 *
 * @returns instance id
 * @throws ImageError `image-not-found`, `launch-failed`
 * @throws CloudError
 */
export async function launchInstance(
  site: InstanceSite,
  launch: LaunchRecord,
  request: LaunchRequest,
  signal: AbortSignal,
): Promise<string> {
  const image = await baseImage(site, request.image, signal);
  const InstanceType = await instanceType(site, request, image, signal);
  signal.throwIfAborted();
  const unaborted = new AbortController().signal;
  await importKey(site, launch, request, image, unaborted);
  signal.throwIfAborted();
  const input = {
    ...launchInput(site, launch, request, image),
    KeyName: launch.name,
    InstanceType,
  } as RunInstancesRequest;
  const id = await runInstance(site, input, signal);
  await waitUntilBooted(site, id, signal);
  return id;
}

/** Repeats the request while parts of AWS do not know the new key pair. */
async function runInstance(
  { region, entry, interval }: InstanceSite,
  input: RunInstancesRequest,
  signal: AbortSignal,
): Promise<string> {
  const unaborted = new AbortController().signal;
  const run = async (): Promise<string | undefined> => {
    try {
      const { Instances: [instance] = [] } = await region.ec2(unaborted).runInstances(input);
      return instance?.InstanceId ?? '';
    } catch (error) {
      if (awsCode(error) === 'InvalidKeyPair.NotFound') return undefined;
      throw error;
    }
  };
  return await poll(run, { subject: `provider ${entry.name}: key pair`, timeout: LAG, interval, signal });
}

/** Finds the AMI with this id, or the newest available AMI of this account with this name. */
async function baseImage(
  { region, entry }: InstanceSite,
  image: string,
  signal: AbortSignal,
): Promise<Image> {
  const query = /^ami-[0-9a-f]+$/.test(image)
    ? { ImageIds: [image], IncludeDeprecated: true }
    : { Owners: ['self'], Filters: [exactFilter('name', [image])] };
  const found = (await listImages(region, query, signal).catch(unlessAbsent)) ?? [];
  const [newest] = newestFirst(found.filter(({ State: state }) => state === 'available'));
  if (newest !== undefined) return newest;
  throw new ImageError(
    'image-not-found',
    `provider ${entry.name}: ${region.name} has no available AMI with the id "${image}", nor does this account have one with that name; correct the base image`,
  );
}

function newestFirst(images: readonly Image[]): Image[] {
  return images.toSorted(
    (one, other) => Date.parse(other.CreationDate ?? '') - Date.parse(one.CreationDate ?? ''),
  );
}

/**
 * Checks with a dry run whether the newest AMI of this account could be launched.
 *
 * @returns message of the check
 * @throws CloudError with AWS's reason if not
 */
export async function tryLaunch(site: InstanceSite, signal: AbortSignal): Promise<string> {
  const { region } = site;
  const query = { Owners: ['self'], Filters: [{ Name: 'state', Values: ['available'] }] };
  const [image] = newestFirst(await listImages(region, query, signal));
  if (image === undefined) return 'cannot be checked: this account has no AMI';
  const InstanceType = (await instanceType(site, {}, image, signal)) as RunInstancesRequest['InstanceType'];
  const launch = { name: 'nodepool-builder-doctor', buildId: 'doctor', launchedAt: new Date(), port: 22 };
  const { ClientToken: _, ...rest } = launchInput(site, launch, {}, image);
  const input = { ...rest, InstanceType, DryRun: true };
  try {
    await region.ec2(signal).runInstances(input);
  } catch (error) {
    if (awsCode(error) !== 'DryRunOperation') throw error;
  }
  return `AWS would launch AMI ${image.ImageId} on ${InstanceType}`;
}

/** Returns the configured instance type, or the smallest matching one. */
async function instanceType(
  site: InstanceSite,
  { minRam, nameFilter }: Pick<LaunchRequest, 'minRam' | 'nameFilter'>,
  { Architecture: architecture = 'x86_64', BootMode: bootMode }: Image,
  signal: AbortSignal,
): Promise<string> {
  const { region, entry } = site;
  const { 'instance-type': configured } = entry;
  if (configured !== undefined && minRam === undefined && nameFilter === undefined) return configured;
  const memory = minRam ?? DEFAULT_MEMORY;
  const Filters = Object.entries({
    'current-generation': 'true',
    'bare-metal': 'false',
    hypervisor: 'nitro', // Nitro instances have an up-to-date console log and can boot with UEFI.
    'supported-usage-class': 'on-demand',
    'supported-root-device-type': 'ebs',
    'processor-info.supported-architecture': architecture,
    ...((bootMode === 'uefi' || bootMode === 'legacy-bios') && { 'supported-boot-mode': bootMode }),
    ...(nameFilter !== undefined && { 'instance-type': `*${nameFilter}*` }),
  }).map(([Name, value]) => ({ Name, Values: [value] }));
  const types = await region.list(
    'DescribeInstanceTypes',
    (page) => region.ec2(signal).describeInstanceTypes({ Filters, ...page }),
    ({ InstanceTypes }) => InstanceTypes,
  );
  const name = smallestType(types, memory);
  if (name !== undefined) return name;
  const which = nameFilter === undefined ? '' : ` and "${nameFilter}" in its name`;
  throw new ImageError(
    'launch-failed',
    `provider ${entry.name}: ${region.name} has no instance type for ${architecture} with at least ${memory} MiB${which}; correct min-ram or name-filter`,
  );
}

/** Returns the name of the smallest type without accelerators that has enough memory. Breaks ties by name. */
export function smallestType(types: readonly InstanceTypeInfo[], memory: number): string | undefined {
  const sizes = types
    .filter((type) => !type.GpuInfo && !type.FpgaInfo && !type.InferenceAcceleratorInfo && !type.NeuronInfo)
    .map(({ InstanceType: name = '', MemoryInfo, VCpuInfo }) => ({
      name,
      memory: MemoryInfo?.SizeInMiB ?? 0,
      cpus: VCpuInfo?.DefaultVCpus ?? 0,
    }))
    .filter((type) => type.memory >= memory);
  const [smallest] = sizes.toSorted(
    (one, other) => one.memory - other.memory || one.cpus - other.cpus || (one.name < other.name ? -1 : 1),
  );
  return smallest?.name;
}

/**
 * Imports the login key. Windows accepts only RSA keys, so for other keys it imports one that encrypts the password.
 */
async function importKey(
  site: InstanceSite,
  launch: LaunchRecord,
  { publicKey }: LaunchRequest,
  { Platform: platform }: Image,
  signal: AbortSignal,
): Promise<void> {
  const isTaken = platform?.toLowerCase() !== 'windows' || publicKey.startsWith('ssh-rsa ');
  if (isTaken) return await importKeyPair(site, launch, publicKey, signal);
  const key = await newPasswordKey();
  await importKeyPair(site, launch, key.publicKey, signal);
  await keepPasswordKey(site.directory, launch.name, key.privateKey);
}

async function importKeyPair(
  site: InstanceSite,
  launch: LaunchRecord,
  publicKey: string,
  signal: AbortSignal,
): Promise<void> {
  const { region } = site;
  const input = {
    KeyName: launch.name,
    PublicKeyMaterial: Buffer.from(publicKey.trim()),
    TagSpecifications: [{ ResourceType: 'key-pair' as const, Tags: toTags(resourceTags(site, launch)) }],
  };
  try {
    await region.ec2(signal).importKeyPair(input);
  } catch (error) {
    // The name is new, so the SDK has repeated a request whose response was lost.
    if (awsCode(error) !== 'InvalidKeyPair.Duplicate') throw error;
  }
}

function launchInput(
  site: InstanceSite,
  launch: LaunchRecord,
  { userData }: Pick<LaunchRequest, 'userData'>,
  image: Image,
): RunInstancesRequest {
  const { entry } = site;
  const { 'subnet-id': SubnetId, 'security-group-id': group, imdsv2 } = entry;
  const { 'public-ipv4': withV4, 'public-ipv6': withV6, 'iam-instance-profile': profile } = entry;
  const SecurityGroupIds = group === undefined ? undefined : [group].flat();
  const Tags = toTags(resourceTags(site, launch));
  const isPlain = withV4 === undefined && !withV6;
  return {
    MinCount: 1,
    MaxCount: 1,
    ImageId: image.ImageId,
    ClientToken: launch.name,
    InstanceInitiatedShutdownBehavior: 'stop',
    TagSpecifications: (['instance', 'volume'] as const).map((ResourceType) => ({ ResourceType, Tags })),
    ...(userData !== undefined && { UserData: Buffer.from(userData).toString('base64') }),
    ...(imdsv2 !== undefined && { MetadataOptions: { HttpTokens: imdsv2 } }),
    ...(profile !== undefined && {
      IamInstanceProfile: { [profile.startsWith('arn:') ? 'Arn' : 'Name']: profile },
    }),
    BlockDeviceMappings: volumes(entry, image),
    ...(isPlain
      ? { ...(SubnetId && { SubnetId }), ...(SecurityGroupIds && { SecurityGroupIds }) }
      : {
          NetworkInterfaces: [
            {
              DeviceIndex: 0,
              ...(SubnetId && { SubnetId }),
              ...(SecurityGroupIds && { Groups: SecurityGroupIds }),
              ...(withV4 !== undefined && { AssociatePublicIpAddress: withV4 }),
              ...(withV6 && { Ipv6AddressCount: 1 }),
            },
          ],
        }),
  };
}

/**
 * Returns the volumes of an AMI, all of which are deleted with the instance. A capture inherits the configured root
 * volume.
 */
function volumes(
  entry: InstanceSite['entry'],
  { BlockDeviceMappings: mappings = [], RootDeviceName: root }: Image,
): BlockDeviceMapping[] {
  const { 'volume-type': VolumeType, 'volume-size': size, iops, throughput } = entry;
  const ofRoot = (smallest = 0): EbsBlockDevice => ({
    VolumeType,
    ...(size !== undefined && { VolumeSize: Math.max(size, smallest) }),
    ...(iops !== undefined && { Iops: iops }),
    ...(throughput !== undefined && { Throughput: throughput }),
  });
  return mappings
    .filter(({ Ebs }) => Ebs !== undefined)
    .map(({ DeviceName, Ebs }) => ({
      DeviceName,
      Ebs: { DeleteOnTermination: true, ...(DeviceName === root && ofRoot(Ebs?.VolumeSize)) },
    }));
}

async function waitUntilBooted(
  { region, entry, interval }: InstanceSite,
  id: string,
  signal: AbortSignal,
): Promise<Ec2Instance> {
  const subject = `provider ${entry.name}: instance ${id}`;
  const since = performance.now();
  const check = async (): Promise<Ec2Instance | undefined> => {
    const instance = await getInstance(region, id, signal);
    if (instance === undefined && performance.now() - since < LAG * 1000) return undefined;
    const state = instance === undefined ? 'failed' : stateOf(instance);
    if (state === 'starting') return undefined;
    if (instance !== undefined && state !== 'failed') return instance;
    const why = instance === undefined ? ' is gone' : ` is ${instance.State?.Name}${stateReason(instance)}`;
    throw new ImageError('launch-failed', `${subject}${why}; choose another base image, type or subnet`);
  };
  return await poll(check, { subject, timeout: Number.POSITIVE_INFINITY, interval, signal });
}
