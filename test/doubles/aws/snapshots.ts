import { createHash } from 'node:crypto';
import type {
  CompleteSnapshotRequest,
  GetSnapshotBlockRequest,
  ListSnapshotBlocksRequest,
  PutSnapshotBlockRequest,
  StartSnapshotRequest,
} from '@aws-sdk/client-ebs';
import type {
  DeleteSnapshotRequest,
  DescribeSnapshotsRequest,
  ModifySnapshotAttributeRequest,
  Snapshot,
} from '@aws-sdk/client-ec2';
import { passes, type SnapshotState } from './cloud-state.ts';
import { AwsError } from './model.ts';
import type { Region } from './region.ts';

/** Size of an EBS block in bytes. */
export const BLOCK_SIZE = 524_288;

/** Returns the digests of all blocks of a snapshot, in base64, by index. */
export function allBlocks({ inherited, blocks }: SnapshotState): Map<number, string> {
  return new Map([...(inherited ?? []), ...blocks]);
}

/** Operations of EBS direct, by name. */
export const EBS_OPERATIONS = {
  StartSnapshot(region: Region, input: StartSnapshotRequest) {
    const { VolumeSize: volumeSize = 0, ClientToken: clientToken, ParentSnapshotId: parent } = input;
    if (!Number.isInteger(volumeSize) || volumeSize < 1) invalid('VolumeSize must be at least 1 GiB');
    if (input.Tags && input.Tags.length > 50) invalid('a snapshot has at most 50 tags');
    const known = region.snapshots.all().find((one) => clientToken && one.clientToken === clientToken);
    if (known !== undefined && (known.volumeSize !== volumeSize || known.parent !== parent)) {
      throw new AwsError('ConflictException', 'the client token was used with other request parameters', 409);
    }
    const base = parent === undefined ? undefined : (region.snapshots.find(parent) ?? notFound(parent));
    if (base !== undefined && (base.state !== 'completed' || base.volumeSize > volumeSize)) {
      invalid('the parent snapshot is not completed, or is larger than the volume');
    }
    const snapshot =
      known ??
      region.snapshots.add({
        volumeSize,
        description: input.Description,
        parent,
        clientToken,
        tags: input.Tags,
        state: 'pending',
        pendingLists: region.options.pendingLists,
        isComplete: false,
        ...(base && { inherited: allBlocks(base) }),
        blocks: new Map(),
        sharedWith: new Set(),
      });
    return {
      SnapshotId: snapshot.id,
      OwnerId: region.options.account,
      Status: snapshot.state,
      StartTime: snapshot.createdAt.getTime() / 1000,
      VolumeSize: volumeSize,
      BlockSize: BLOCK_SIZE,
      Tags: snapshot.tags,
      ...(parent !== undefined && { ParentSnapshotId: parent }),
    };
  },
  PutSnapshotBlock(region: Region, input: PutSnapshotBlockRequest) {
    const snapshot = openSnapshot(region, input.SnapshotId);
    const { BlockIndex: index = -1, BlockData: data, Checksum: checksum = '' } = input;
    const bytes = data as unknown as Buffer;
    if (input.ChecksumAlgorithm !== 'SHA256') invalid('ChecksumAlgorithm must be SHA256');
    if (input.DataLength !== BLOCK_SIZE || bytes.length !== BLOCK_SIZE) {
      invalid(`DataLength must be ${BLOCK_SIZE}, and the body as long`);
    }
    if (index < 0 || index * BLOCK_SIZE >= snapshot.volumeSize * 2 ** 30) invalid('BlockIndex is too large');
    const digest = createHash('sha256').update(bytes).digest('base64');
    if (digest !== checksum) invalid('the checksum is not that of the data');
    snapshot.blocks.set(index, digest);
    region.receivedBytes += bytes.length;
    return { Checksum: digest, ChecksumAlgorithm: 'SHA256' };
  },
  CompleteSnapshot(region: Region, input: CompleteSnapshotRequest) {
    const snapshot = openSnapshot(region, input.SnapshotId);
    if (input.ChangedBlocksCount !== snapshot.blocks.size) {
      invalid(
        `ChangedBlocksCount is ${input.ChangedBlocksCount}, but ${snapshot.blocks.size} blocks were put`,
      );
    }
    if (input.Checksum !== undefined) {
      const digests = [...snapshot.blocks].toSorted(([one], [other]) => one - other);
      const hash = createHash('sha256');
      for (const [, digest] of digests) hash.update(Buffer.from(digest, 'base64'));
      const wanted = hash.digest('base64');
      const { ChecksumAlgorithm: algorithm, ChecksumAggregationMethod: method } = input;
      if (algorithm !== 'SHA256' || method !== 'LINEAR') invalid('the checksum needs SHA256 and LINEAR');
      if (input.Checksum !== wanted) invalid('the checksum is not that of the blocks');
    }
    snapshot.isComplete = true;
    return { Status: 'pending' };
  },
  GetSnapshotBlock(region: Region, input: GetSnapshotBlockRequest) {
    const { SnapshotId: id = '', BlockIndex: index = -1 } = input;
    const snapshot = region.snapshots.find(id);
    if (snapshot === undefined) return notFound(id);
    const bytes = snapshot.data?.[index];
    if (bytes === undefined || input.BlockToken !== `token-${index}`) invalid('the block or its token');
    const Checksum = snapshot.blocks.get(index);
    return { DataLength: BLOCK_SIZE, BlockData: bytes, Checksum, ChecksumAlgorithm: 'SHA256' };
  },
  ListSnapshotBlocks(region: Region, input: ListSnapshotBlocksRequest) {
    const snapshot = region.snapshots.find(input.SnapshotId ?? '');
    if (snapshot === undefined) return notFound(input.SnapshotId ?? '');
    if (snapshot.state !== 'completed') invalid('the snapshot is not in the state completed');
    const { MaxResults: most = 100, StartingBlockIndex: start = 0, NextToken: token } = input;
    if (most < 100 || most > 10_000) invalid('MaxResults must be between 100 and 10000');
    const first = token === undefined ? start : Number(token);
    const indexes = [...allBlocks(snapshot).keys()].toSorted((one, other) => one - other);
    const rest = indexes.filter((index) => index >= first);
    const next = rest[most];
    return {
      Blocks: rest.slice(0, most).map((index) => ({ BlockIndex: index, BlockToken: `token-${index}` })),
      VolumeSize: snapshot.volumeSize,
      BlockSize: BLOCK_SIZE,
      ExpiryTime: Date.now() / 1000 + 604_800,
      ...(next !== undefined && { NextToken: String(next) }),
    };
  },
};

/** Operations of EC2 on snapshots. */
export const SNAPSHOT_OPERATIONS = {
  DescribeSnapshots(region: Region, input: DescribeSnapshotsRequest) {
    const { SnapshotIds: ids, OwnerIds: owners } = input;
    const listed = ids ? ids.map((id) => region.snapshots.get(id)) : region.snapshots.list();
    if (owners?.some((owner) => owner !== 'self' && owner !== region.options.account))
      return { Snapshots: [] };
    const found = listed.filter((snapshot) =>
      passes(snapshot, input.Filters, {
        status: snapshot.state,
        'snapshot-id': snapshot.id,
        'owner-id': region.options.account,
        description: snapshot.description,
        'volume-size': String(snapshot.volumeSize),
      }),
    );
    const { page, next } = region.page(found, input.MaxResults, input.NextToken);
    return { Snapshots: page.map((snapshot) => describe(region, snapshot)), NextToken: next };
  },
  DeleteSnapshot(region: Region, { SnapshotId: id }: DeleteSnapshotRequest) {
    const snapshot = region.snapshots.get(id);
    const user = region.images.all().find((image) => image.snapshots.includes(snapshot.id));
    if (user !== undefined) {
      const reason = `The snapshot ${snapshot.id} is currently in use by ${user.id}`;
      throw new AwsError('InvalidSnapshot.InUse', reason);
    }
    region.snapshots.delete(snapshot.id);
    return {};
  },
  ModifySnapshotAttribute(region: Region, input: ModifySnapshotAttributeRequest) {
    const snapshot = region.snapshots.get(input.SnapshotId);
    for (const { UserId: id } of input.CreateVolumePermission?.Add ?? []) if (id) snapshot.sharedWith.add(id);
    return {};
  },
};

/** Advances a completed snapshot, which lists show as such after some calls. */
function describe(region: Region, snapshot: SnapshotState): Snapshot {
  if (snapshot.state === 'pending' && snapshot.isComplete && snapshot.pendingLists-- <= 0) {
    snapshot.state = 'completed';
  }
  return {
    SnapshotId: snapshot.id,
    State: snapshot.state,
    ...(snapshot.stateMessage !== undefined && { StateMessage: snapshot.stateMessage }),
    Progress: snapshot.state === 'completed' ? '100%' : '50%',
    StartTime: snapshot.createdAt,
    OwnerId: region.options.account,
    VolumeSize: snapshot.volumeSize,
    ...(snapshot.description !== undefined && { Description: snapshot.description }),
    Encrypted: false,
    Tags: snapshot.tags,
  };
}

function openSnapshot(region: Region, id = ''): SnapshotState {
  const snapshot = region.snapshots.find(id);
  if (snapshot === undefined) return notFound(id);
  if (snapshot.isComplete || snapshot.state !== 'pending') invalid(`the snapshot ${id} is not pending`);
  return snapshot;
}

function invalid(message: string): never {
  throw new AwsError('ValidationException', message);
}

function notFound(id: string): never {
  throw new AwsError('ResourceNotFoundException', `The snapshot '${id}' does not exist`, 404);
}
