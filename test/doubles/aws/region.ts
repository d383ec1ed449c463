import type { CreateTagsRequest, DeleteTagsRequest, DescribeRegionsRequest } from '@aws-sdk/client-ec2';
import type { BootMachine } from '../line-machine.ts';
import {
  type DoubleInstanceType,
  type ImageState,
  type ImportState,
  type InstanceState,
  type KeyPairState,
  type Resource,
  Resources,
  type SnapshotState,
} from './cloud-state.ts';
import { AwsError } from './model.ts';

/** Behaviour of the double. */
export interface AwsDoubleOptions {
  /** Account of the credentials. */
  readonly account: string;
  /** Number of lists that do not show a new resource yet. */
  readonly lag: number;
  /** Number of descriptions that show a resource as pending. */
  readonly pendingLists: number;
  /** Max concurrent import tasks. */
  readonly importTasks: number;
  /** Default page size of lists. */
  readonly pageSize: number;
  /** Size in GiB of the disk in an S3 object; undefined if it does not exist. Default: each object has 1 GiB. */
  readonly objectSize: (bucket: string, key: string) => number | undefined | Promise<number | undefined>;
  /** Instance types. */
  readonly instanceTypes: readonly DoubleInstanceType[];
  /** Starts the system of an instance. Default: a machine with few commands. */
  readonly boot: BootMachine;
}

/** A region in the double. */
export class Region {
  readonly name: string;
  readonly options: AwsDoubleOptions;
  readonly snapshots: Resources<SnapshotState>;
  readonly images: Resources<ImageState>;
  readonly snapshotImports: Resources<ImportState>;
  readonly imageImports: Resources<ImportState>;
  readonly instances: Resources<InstanceState>;
  readonly keyPairs: Resources<KeyPairState>;
  /** Error of each new instance. Default: none. */
  launchError: string | undefined;
  /** SSH port of the machines. */
  readonly port: () => number;
  /** Bytes of uploaded blocks. */
  receivedBytes = 0;
  readonly #others: (name: string) => Region;

  constructor(name: string, options: AwsDoubleOptions, others: (name: string) => Region, port: () => number) {
    const { lag } = options;
    this.port = port;
    this.name = name;
    this.options = options;
    this.#others = others;
    this.snapshots = new Resources('snap', 'InvalidSnapshot.NotFound', lag);
    this.images = new Resources('ami', 'InvalidAMIID.NotFound', lag);
    this.snapshotImports = new Resources('import-snap', 'InvalidConversionTaskId', lag);
    this.imageImports = new Resources('import-ami', 'InvalidConversionTaskId', lag);
    this.instances = new Resources('i', 'InvalidInstanceID.NotFound', lag);
    this.keyPairs = new Resources('key', 'InvalidKeyPair.NotFound', lag);
  }

  other(name: string): Region {
    return this.#others(name);
  }

  /** Returns one page of a list. */
  page<T>(
    items: readonly T[],
    most = this.options.pageSize,
    token = '0',
  ): { page: T[]; next: string | undefined } {
    const first = Number(token);
    const end = first + Math.min(most, this.options.pageSize);
    return { page: items.slice(first, end), next: end < items.length ? String(end) : undefined };
  }

  /** A resource that accepts tags. */
  resource(id: string): Resource {
    const found =
      this.snapshots.find(id) ??
      this.images.find(id) ??
      this.snapshotImports.find(id) ??
      this.imageImports.find(id) ??
      this.instances.find(id) ??
      this.keyPairs.find(id);
    if (found !== undefined) return found;
    const kind = id.startsWith('ami-') ? 'InvalidAMIID.NotFound' : 'InvalidSnapshot.NotFound';
    throw new AwsError(kind, `The ID '${id}' does not exist`);
  }

  /** Advances an import, which ends after some descriptions. */
  async proceed(task: ImportState): Promise<void> {
    if (task.status !== 'active' || task.pendingLists-- > 0) return;
    const { S3Bucket: bucket = '', S3Key: key = '' } = task.bucket;
    const size = await this.options.objectSize(bucket, key);
    if (size === undefined) {
      task.status = 'deleted';
      task.statusMessage = `ClientError: Unable to read the object s3://${bucket}/${key}`;
      return;
    }
    const snapshot = this.snapshots.add({
      volumeSize: size,
      description: `Created by AWS-VMImport service for ${task.id}`,
      state: 'completed',
      pendingLists: 0,
      isComplete: true,
      blocks: new Map(),
      sharedWith: new Set(),
    });
    task.snapshotId = snapshot.id;
    task.status = 'completed';
    task.statusMessage = 'completed';
    if (!task.id.startsWith('import-ami')) return;
    const { architecture } = task;
    task.imageId = this.images.add({
      name: task.id,
      architecture,
      registration: {
        Architecture: architecture as 'x86_64',
        RootDeviceName: '/dev/sda1',
        BlockDeviceMappings: [{ DeviceName: '/dev/sda1', Ebs: { SnapshotId: snapshot.id } }],
      },
      snapshots: [snapshot.id],
      owner: this.options.account,
      isPublic: false,
      state: 'available',
      pendingLists: 0,
      sharedWith: new Set(),
    }).id;
  }
}

/** Operations of EC2 on tags and regions. */
export const GENERAL_OPERATIONS = {
  CreateTags(region: Region, { Resources: ids = [], Tags: tags = [] }: CreateTagsRequest) {
    for (const resource of ids.map((id) => region.resource(id))) {
      const keys = new Set(tags.map(({ Key }) => Key));
      resource.tags = [...resource.tags.filter(({ Key }) => !keys.has(Key)), ...tags];
    }
    return {};
  },
  DeleteTags(region: Region, { Resources: ids = [], Tags: tags = [] }: DeleteTagsRequest) {
    for (const resource of ids.map((id) => region.resource(id))) {
      const keys = new Set(tags.map(({ Key }) => Key));
      resource.tags = resource.tags.filter(({ Key }) => !keys.has(Key));
    }
    return {};
  },
  DescribeRegions(region: Region, _input: DescribeRegionsRequest) {
    return { Regions: [{ RegionName: region.name, OptInStatus: 'opt-in-not-required' }] };
  },
};
