import {
  constants,
  createHash,
  createPublicKey,
  type KeyObject,
  publicEncrypt,
  randomBytes,
} from 'node:crypto';
import type {
  CreateImageRequest,
  DeleteKeyPairRequest,
  DescribeInstancesRequest,
  DescribeInstanceTypesRequest,
  DescribeKeyPairsRequest,
  GetConsoleOutputRequest,
  GetConsoleScreenshotRequest,
  GetPasswordDataRequest,
  ImportKeyPairRequest,
  Instance,
  InstanceStateName,
  RunInstancesRequest,
  StopInstancesRequest,
  TerminateInstancesRequest,
} from '@aws-sdk/client-ec2';
import type { Disk } from '../line-machine.ts';
import {
  type DoubleInstanceType,
  type InstanceState,
  passes,
  type SnapshotState,
  tagsFor,
} from './cloud-state.ts';
import { checkName } from './images.ts';
import { AwsError } from './model.ts';
import type { Region } from './region.ts';
import { BLOCK_SIZE } from './snapshots.ts';

export const INSTANCE_TYPES: readonly DoubleInstanceType[] = [
  { name: 'g4dn.small', architecture: 'x86_64', memory: 2048, cpus: 1, gpus: 1 },
  { name: 'm5.large', architecture: 'x86_64', memory: 8192, cpus: 2 },
  { name: 'm5.metal', architecture: 'x86_64', memory: 2048, cpus: 1, isBareMetal: true },
  { name: 't3.nano', architecture: 'x86_64', memory: 512, cpus: 2 },
  { name: 't3.small', architecture: 'x86_64', memory: 2048, cpus: 2 },
  { name: 't4g.small', architecture: 'arm64', memory: 2048, cpus: 2 },
];

/** A screenshot that consists of a JPEG's magic number only. */
const SCREENSHOT = Buffer.from('ffd8ffe000104a464946', 'hex');

const MANY_TAGS = 50;

/** Operations of EC2 on key pairs and instances. */
export const INSTANCE_OPERATIONS = {
  ImportKeyPair(region: Region, input: ImportKeyPairRequest) {
    const { KeyName: name = '', PublicKeyMaterial: material } = input;
    const publicKey = Buffer.from(material ?? []).toString();
    if (!/^ssh-(?:ed25519|rsa) [A-Za-z0-9+/]+=*(?: |$)/.test(publicKey)) {
      throw new AwsError('InvalidKey.Format', 'Key is not in valid OpenSSH public key format');
    }
    if (region.keyPairs.all().some((pair) => pair.name === name)) {
      throw new AwsError('InvalidKeyPair.Duplicate', `The keypair '${name}' already exists`);
    }
    const tags = tagsFor('key-pair', input.TagSpecifications);
    const pair = region.keyPairs.add({ name, publicKey, tags });
    return { KeyName: name, KeyPairId: pair.id, Tags: pair.tags };
  },
  DescribeKeyPairs(region: Region, input: DescribeKeyPairsRequest) {
    const found = region.keyPairs
      .list()
      .filter((pair) => passes(pair, input.Filters, { 'key-name': pair.name, 'key-pair-id': pair.id }));
    return {
      KeyPairs: found.map(({ id, name, tags, createdAt }) => ({
        KeyPairId: id,
        KeyName: name,
        Tags: tags,
        CreateTime: createdAt,
      })),
    };
  },
  DeleteKeyPair(region: Region, { KeyName: name, KeyPairId: id }: DeleteKeyPairRequest) {
    const pair = region.keyPairs.all().find((one) => one.name === name || one.id === id);
    if (pair !== undefined) region.keyPairs.delete(pair.id);
    return { Return: true }; // also for one that does not exist
  },
  DescribeInstanceTypes(region: Region, input: DescribeInstanceTypesRequest) {
    const { MaxResults: most = 100 } = input;
    if (most < 5 || most > 100) throw new AwsError('InvalidParameterValue', 'MaxResults is out of range');
    const found = region.options.instanceTypes.filter((type) =>
      passes({ id: type.name, createdAt: new Date(), tags: [], hiddenLists: 0 }, input.Filters, {
        'instance-type': type.name,
        'bare-metal': String(type.isBareMetal ?? false),
        'current-generation': 'true',
        hypervisor: type.isBareMetal ? undefined : 'nitro',
        'supported-boot-mode': type.architecture === 'arm64' ? 'uefi' : 'legacy-bios',
        'supported-usage-class': 'on-demand',
        'supported-root-device-type': 'ebs',
        'processor-info.supported-architecture': type.architecture,
      }),
    );
    const { page, next } = region.page(found, most, input.NextToken);
    return {
      InstanceTypes: page.map(({ name, architecture, memory, cpus, gpus }) => ({
        InstanceType: name,
        MemoryInfo: { SizeInMiB: memory },
        VCpuInfo: { DefaultVCpus: cpus },
        ProcessorInfo: { SupportedArchitectures: [architecture] },
        ...(gpus !== undefined && { GpuInfo: { Gpus: [{ Count: gpus }] } }),
      })),
      NextToken: next,
    };
  },
  RunInstances(region: Region, input: RunInstancesRequest) {
    const { ClientToken: token, MinCount: least, MaxCount: most } = input;
    const known = region.instances.all().find(({ request }) => token && request.ClientToken === token);
    if (known !== undefined && JSON.stringify(known.request) !== JSON.stringify(input)) {
      throw new AwsError('IdempotentParameterMismatch', 'The client token was used with other parameters');
    }
    if (least !== 1 || most !== 1) throw new AwsError('Unsupported', 'The double launches one at a time');
    const instance = known ?? launch(region, input);
    return { ReservationId: 'r-0', OwnerId: region.options.account, Instances: [describe(instance)] };
  },
  DescribeInstances(region: Region, input: DescribeInstancesRequest) {
    const { InstanceIds: ids } = input;
    if (ids !== undefined && input.MaxResults !== undefined) {
      throw new AwsError('InvalidParameterCombination', 'InstanceIds and MaxResults are both given');
    }
    const listed = ids ? ids.map((id) => visible(region, id)) : region.instances.list();
    const found = listed.filter((instance) =>
      passes(instance, input.Filters, {
        'instance-id': instance.id,
        'instance-state-name': instance.state,
        'client-token': instance.request.ClientToken,
        'key-name': instance.request.KeyName,
      }),
    );
    const { page, next } = region.page(found, input.MaxResults, input.NextToken);
    return {
      Reservations: page.map((instance) => ({ ReservationId: 'r-0', Instances: [describe(instance)] })),
      NextToken: next,
    };
  },
  StopInstances(region: Region, { InstanceIds: ids = [] }: StopInstancesRequest) {
    return {
      StoppingInstances: ids.map((id) => {
        const instance = region.instances.get(id);
        const previous = instance.state;
        if (!['running', 'stopping', 'stopped'].includes(previous)) refuseState(instance);
        if (previous === 'running') void powerOff(instance);
        return change(instance, previous);
      }),
    };
  },
  TerminateInstances(region: Region, { InstanceIds: ids = [] }: TerminateInstancesRequest) {
    return {
      TerminatingInstances: ids.map((id) => {
        const instance = region.instances.get(id);
        if (instance.request.DisableApiTermination === true) {
          const reason = `The instance '${id}' may not be terminated. Modify its 'disableApiTermination' instance attribute and try again.`;
          throw new AwsError('OperationNotPermitted', reason);
        }
        const previous = instance.state;
        void terminate(instance);
        return change(instance, previous);
      }),
    };
  },
  GetConsoleOutput(region: Region, { InstanceId: id }: GetConsoleOutputRequest) {
    const { machine } = region.instances.get(id);
    const Output = Buffer.from(machine?.console ?? '').toString('base64');
    return { InstanceId: id, Timestamp: new Date(), Output };
  },
  GetConsoleScreenshot(region: Region, { InstanceId: id }: GetConsoleScreenshotRequest) {
    const instance = region.instances.get(id);
    if (instance.state !== 'running') refuseState(instance);
    return { InstanceId: id, ImageData: SCREENSHOT.toString('base64') };
  },
  GetPasswordData(region: Region, { InstanceId: id }: GetPasswordDataRequest) {
    const { password, request, state } = region.instances.get(id);
    const pair = region.keyPairs.all().find(({ name }) => name === request.KeyName);
    const key = pair === undefined ? undefined : rsaKey(pair.publicKey);
    // Windows writes it after booting.
    const isThere = password !== undefined && key !== undefined && state === 'running';
    const data = isThere
      ? publicEncrypt({ key, padding: constants.RSA_PKCS1_PADDING }, Buffer.from(password))
      : Buffer.alloc(0);
    return { InstanceId: id, Timestamp: new Date(), PasswordData: data.toString('base64') };
  },
  CreateImage(region: Region, input: CreateImageRequest) {
    const instance = region.instances.get(input.InstanceId);
    if (!['running', 'stopped'].includes(instance.state)) refuseState(instance);
    const { architecture, registration, snapshots } = region.images.get(instance.request.ImageId);
    const kinds = ['image', 'snapshot'];
    const [root] = snapshots;
    const { Name: name = '' } = input;
    checkName(region, name);
    const data = diskBlocks(instance.disk ?? {});
    const [mapping] = instance.request.BlockDeviceMappings ?? [];
    const snapshot = region.snapshots.add({
      volumeSize: mapping?.Ebs?.VolumeSize ?? region.snapshots.get(root).volumeSize,
      description: `Created by CreateImage(${instance.id}) for ami`,
      tags: tagsFor('snapshot', input.TagSpecifications, kinds),
      state: 'completed',
      pendingLists: 0,
      isComplete: true,
      blocks: new Map(data.map((bytes, index) => [index, sha256(bytes)])),
      data,
      sharedWith: new Set(),
    });
    const image = region.images.add({
      name,
      description: input.Description,
      architecture,
      registration,
      snapshots: [snapshot.id],
      owner: region.options.account,
      isPublic: false,
      tags: tagsFor('image', input.TagSpecifications, kinds),
      state: 'pending',
      pendingLists: region.options.pendingLists,
      sharedWith: new Set(),
    });
    return { ImageId: image.id };
  },
};

/** Returns the blocks of a disk, which contain its files as JSON. */
function diskBlocks(disk: Disk): Buffer[] {
  const text = Buffer.from(JSON.stringify(disk));
  const bytes = Buffer.alloc(Math.ceil(text.length / BLOCK_SIZE) * BLOCK_SIZE);
  text.copy(bytes);
  return Array.from({ length: bytes.length / BLOCK_SIZE }, (_, index) =>
    bytes.subarray(index * BLOCK_SIZE, (index + 1) * BLOCK_SIZE),
  );
}

/** Returns the files on a disk, which has none if its blocks were uploaded. */
function readDisk(snapshot: SnapshotState | undefined): Disk {
  const text = Buffer.concat(snapshot?.data ?? []).toString();
  return text === '' ? {} : (JSON.parse(text.slice(0, text.lastIndexOf('}') + 1)) as Disk);
}

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('base64');
}

/** Adds an instance to the region. Its machine boots in the background. */
function launch(region: Region, input: RunInstancesRequest): InstanceState {
  const image = region.images.get(input.ImageId);
  if (image.state !== 'available') {
    throw new AwsError('InvalidAMIID.Unavailable', `The AMI ${image.id} is not available`);
  }
  const type = region.options.instanceTypes.find(({ name }) => name === input.InstanceType);
  if (type === undefined) {
    throw new AwsError('InvalidParameterValue', `Invalid value '${input.InstanceType}' for InstanceType.`);
  }
  if (type.architecture !== image.architecture) {
    const reason = `The architecture '${type.architecture}' of the specified instance type does not match the architecture '${image.architecture}' of the specified AMI.`;
    throw new AwsError('InvalidParameterValue', reason);
  }
  const pair = region.keyPairs.all().find(({ name }) => name === input.KeyName);
  const isKnown = pair !== undefined && pair.hiddenLists-- <= 0; // eventually consistent
  if (input.KeyName !== undefined && !isKnown) {
    throw new AwsError('InvalidKeyPair.NotFound', `The key pair '${input.KeyName}' does not exist`);
  }
  if (image.platform !== undefined && pair !== undefined && !pair.publicKey.startsWith('ssh-rsa ')) {
    throw new AwsError(
      'InvalidParameterCombination',
      'ED25519 key pairs are not supported with Windows AMIs.',
    );
  }
  if (input.NetworkInterfaces && (input.SubnetId ?? input.SecurityGroupIds)) {
    const reason = 'Network interfaces and an instance-level subnet or security groups may not be specified';
    throw new AwsError('InvalidParameterCombination', reason);
  }
  const tags = tagsFor('instance', input.TagSpecifications, ['instance', 'volume', 'network-interface']);
  if (tags.length > MANY_TAGS) throw new AwsError('TagLimitExceeded', 'An instance has at most 50 tags');
  const instance = region.instances.add({
    request: input,
    address: ['127', ...randomBytes(3).map((byte) => 1 + (byte % 250))].join('.'),
    state: 'pending',
    password: image.platform === undefined ? undefined : randomBytes(12).toString('base64'),
    tags,
  });
  const root = region.snapshots.find(image.snapshots[0] ?? '');
  void boot(region, instance, readDisk(root), pair?.publicKey ?? '');
  return instance;
}

async function boot(region: Region, instance: InstanceState, disk: Disk, publicKey: string): Promise<void> {
  const { launchError } = region;
  if (launchError !== undefined) {
    await Promise.resolve();
    instance.state = 'terminated';
    instance.stateReason = { Code: 'Server.InternalError', Message: launchError };
    return;
  }
  const onPowerOff = (): void => void powerOff(instance);
  const { address: host } = instance;
  const machine = await region.options.boot(disk, { host, port: region.port(), publicKey, onPowerOff });
  if (instance.state !== 'pending') return await machine.powerOff();
  instance.machine = machine;
  instance.state = 'running';
}

async function powerOff(instance: InstanceState): Promise<void> {
  if (instance.state !== 'running') return;
  instance.state = 'stopping';
  await instance.machine?.powerOff();
  const disk = await instance.machine?.readDisk();
  if (disk !== undefined) instance.disk = disk;
  if (instance.state === 'stopping') instance.state = 'stopped';
}

/** Terminates an instance, which lists show as terminated for another hour. */
export async function terminate(instance: InstanceState): Promise<void> {
  const { state } = instance;
  if (state === 'terminated' || state === 'shutting-down') return;
  instance.state = 'shutting-down';
  if (state === 'running') await instance.machine?.powerOff();
  instance.state = 'terminated';
}

/** Returns an instance; right after its launch, requests do not find it yet. */
function visible(region: Region, id: string): InstanceState {
  const instance = region.instances.get(id);
  if (instance.hiddenLists-- <= 0) return instance;
  throw new AwsError('InvalidInstanceID.NotFound', `The instance ID '${id}' does not exist`);
}

/** Codes of states, as AWS numbers them. */
const CODES: Readonly<Record<InstanceStateName, number>> = {
  pending: 0,
  running: 16,
  'shutting-down': 32,
  terminated: 48,
  stopping: 64,
  stopped: 80,
};

function stateOf(name: InstanceStateName): { Code: number; Name: InstanceStateName } {
  return { Code: CODES[name], Name: name };
}

function change(instance: InstanceState, previous: InstanceStateName): object {
  const PreviousState = stateOf(previous);
  return { InstanceId: instance.id, CurrentState: stateOf(instance.state), PreviousState };
}

function refuseState({ id, state }: InstanceState): never {
  const reason = `The instance '${id}' is not in a state from which it can do this: ${state}`;
  throw new AwsError('IncorrectInstanceState', reason);
}

function describe(instance: InstanceState): Instance {
  const { id, request, state, stateReason, address, tags, createdAt } = instance;
  const isUp = !['terminated', 'shutting-down'].includes(state);
  return {
    InstanceId: id,
    State: stateOf(state),
    ...(stateReason && { StateReason: stateReason }),
    ImageId: request.ImageId,
    InstanceType: request.InstanceType,
    KeyName: request.KeyName,
    LaunchTime: createdAt,
    ...(isUp && { PrivateIpAddress: address }),
    ...(state === 'running' && { PublicIpAddress: address }),
    Tags: tags,
  };
}

/** Parses the key in a line of `authorized_keys`. Undefined for types other than RSA. */
function rsaKey(line: string): KeyObject | undefined {
  const [type, data = ''] = line.split(' ');
  if (type !== 'ssh-rsa') return undefined;
  const bytes = Buffer.from(data, 'base64');
  const fields: string[] = [];
  for (let at = 0; at < bytes.length; ) {
    const end = at + 4 + bytes.readUInt32BE(at);
    fields.push(bytes.subarray(at + 4, end).toString('base64url'));
    at = end;
  }
  const [, e = '', n = ''] = fields;
  return createPublicKey({ key: { kty: 'RSA', e, n }, format: 'jwk' });
}
