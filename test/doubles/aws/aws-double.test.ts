// Not a unit test: it starts servers.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { type TestContext, test } from 'node:test';
import {
  CompleteSnapshotCommand,
  EBSClient,
  PutSnapshotBlockCommand,
  StartSnapshotCommand,
} from '@aws-sdk/client-ebs';
import {
  CopyImageCommand,
  CreateTagsCommand,
  DeleteSnapshotCommand,
  DeregisterImageCommand,
  DescribeImagesCommand,
  DescribeImportSnapshotTasksCommand,
  DescribeSnapshotsCommand,
  EC2Client,
  ImportSnapshotCommand,
  RegisterImageCommand,
} from '@aws-sdk/client-ec2';
import { AwsDouble } from './aws-double.ts';
import { AwsError } from './model.ts';
import type { AwsDoubleOptions } from './region.ts';
import { BLOCK_SIZE } from './snapshots.ts';

const BYTES = Buffer.alloc(BLOCK_SIZE, 'a');
const DIGEST = createHash('sha256').update(BYTES).digest('base64');

async function open(t: TestContext, options: Partial<AwsDoubleOptions> = {}) {
  const double = await AwsDouble.start(options);
  t.after(() => double[Symbol.asyncDispose]());
  const settings = {
    endpoint: double.endpoint,
    region: 'us-east-1',
    credentials: { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'secret' },
    maxAttempts: 1,
  };
  const [ec2, ebs] = [new EC2Client(settings), new EBSClient(settings)];
  t.after(() => {
    ec2.destroy();
    ebs.destroy();
  });
  return { double, ec2, ebs, settings };
}

async function makeSnapshot(ebs: EBSClient): Promise<string> {
  const tags = [{ Key: 'nodepool_upload_id', Value: 'u1' }];
  const started = await ebs.send(new StartSnapshotCommand({ VolumeSize: 1, Tags: tags, ClientToken: 't1' }));
  const SnapshotId = started.SnapshotId ?? '';
  const block = { BlockIndex: 3, BlockData: BYTES, DataLength: BLOCK_SIZE };
  const checksum = { Checksum: DIGEST, ChecksumAlgorithm: 'SHA256' } as const;
  await ebs.send(new PutSnapshotBlockCommand({ SnapshotId, ...block, ...checksum }));
  await ebs.send(new CompleteSnapshotCommand({ SnapshotId, ChangedBlocksCount: 1 }));
  return SnapshotId;
}

test('an image in the AWS double is made from blocks, copied to another region, and removed', async (t) => {
  const { double, ec2, ebs, settings } = await open(t, { pendingLists: 1 });
  const id = await makeSnapshot(ebs);
  const filter = { Filters: [{ Name: 'tag:nodepool_upload_id', Values: ['u?'] }] };
  const states: (string | undefined)[] = [];
  for (let count = 0; count < 2; count++) {
    const { Snapshots: [snapshot] = [] } = await ec2.send(new DescribeSnapshotsCommand(filter));
    states.push(snapshot?.State);
  }
  assert.deepEqual(states, ['pending', 'completed']);
  const registration = {
    Name: 'debian-1',
    Architecture: 'x86_64',
    RootDeviceName: '/dev/sda1',
    BlockDeviceMappings: [{ DeviceName: '/dev/sda1', Ebs: { SnapshotId: id, VolumeType: 'gp3' } }],
    VirtualizationType: 'hvm',
    EnaSupport: true,
    TagSpecifications: [{ ResourceType: 'image', Tags: [{ Key: 'Name', Value: '<debian>' }] }],
  } as const;
  const { ImageId } = await ec2.send(new RegisterImageCommand(registration as never));
  await assert.rejects(ec2.send(new RegisterImageCommand(registration as never)), {
    name: 'InvalidAMIName.Duplicate',
  });
  const { Images: [image] = [] } = await ec2.send(new DescribeImagesCommand({ Owners: ['self'] }));
  assert.equal(image?.ImageId, ImageId);
  assert.deepEqual(image?.Tags, [{ Key: 'Name', Value: '<debian>' }]);
  assert.equal(image?.BlockDeviceMappings?.[0]?.Ebs?.SnapshotId, id);
  await assert.rejects(ec2.send(new DeleteSnapshotCommand({ SnapshotId: id })), {
    name: 'InvalidSnapshot.InUse',
  });

  const west = new EC2Client({ ...settings, region: 'us-west-2' });
  t.after(() => west.destroy());
  await west.send(
    new CopyImageCommand({ Name: 'debian-1', SourceImageId: ImageId, SourceRegion: 'us-east-1' }),
  );
  const { Images: copies = [] } = await west.send(new DescribeImagesCommand({ Owners: ['self'] }));
  assert.deepEqual(
    copies.map(({ State }) => State),
    ['pending'],
  );

  await ec2.send(new DeregisterImageCommand({ ImageId }));
  await ec2.send(new DeleteSnapshotCommand({ SnapshotId: id }));
  assert.deepEqual(double.region().snapshots.all(), []);
});

test('a request that does not fit the model is rejected by the AWS double', async (t) => {
  const { double, settings } = await open(t);
  const raw = async (form: Record<string, string>): Promise<string> => {
    const authorization = 'AWS4-HMAC-SHA256 Credential=A/20260101/us-east-1/ec2/aws4_request';
    const body = new URLSearchParams({ Version: '2016-11-15', ...form });
    const response = await fetch(settings.endpoint, { method: 'POST', body, headers: { authorization } });
    return /<Code>(.*)<\/Code>/.exec(await response.text())?.[1] ?? String(response.status);
  };
  assert.equal(await raw({ Action: 'RegisterImage', Nam: 'x' }), 'UnknownParameter');
  assert.equal(await raw({ Action: 'DeleteSnapshot' }), 'MissingParameter');
  assert.equal(await raw({ Action: 'DescribeImages', MaxResults: 'many' }), 'InvalidParameterValue');
  assert.equal(await raw({ Action: 'DescribeImages', 'Owner.2': 'self' }), 'InvalidParameterValue');
  assert.equal(await raw({ Action: 'MakeCoffee' }), 'InvalidAction');
  assert.equal(await raw({ Action: 'DescribeImages', 'Owner.1': 'self' }), '200');
  assert.equal(double.requests.length, 1);
});

test('an import in the AWS double ends after some descriptions, without tags, and a fault has its reason', async (t) => {
  const { ec2 } = await open(t, {
    pendingLists: 1,
    objectSize: (_bucket, key) => (key === 'there' ? 2 : undefined),
  });
  const start = async (S3Key: string) => {
    const DiskContainer = { Format: 'raw', UserBucket: { S3Bucket: 'images', S3Key } };
    return (await ec2.send(new ImportSnapshotCommand({ DiskContainer }))).ImportTaskId ?? '';
  };
  const ids = [await start('there'), await start('missing')];
  const describe = async () => {
    const { ImportSnapshotTasks: tasks = [] } = await ec2.send(
      new DescribeImportSnapshotTasksCommand({ ImportTaskIds: ids }),
    );
    return tasks.map(({ SnapshotTaskDetail: detail }) => detail);
  };
  assert.deepEqual(
    (await describe()).map((detail) => detail?.Status),
    ['active', 'active'],
  );
  const [there, missing] = await describe();
  assert.equal(there?.Status, 'completed');
  assert.equal(missing?.Status, 'deleted');
  assert.match(missing?.StatusMessage ?? '', /Unable to read the object s3:\/\/images\/missing/);
  const { Snapshots: [snapshot] = [] } = await ec2.send(
    new DescribeSnapshotsCommand({ SnapshotIds: [there?.SnapshotId ?? ''] }),
  );
  assert.deepEqual([snapshot?.Tags, snapshot?.VolumeSize], [[], 2]);
  await ec2.send(
    new CreateTagsCommand({ Resources: [there?.SnapshotId ?? ''], Tags: [{ Key: 'a', Value: 'b' }] }),
  );
});

test('lists in the AWS double lag, and faults replace or lose its responses', async (t) => {
  const { double, ec2, ebs } = await open(t, { lag: 2 });
  const faults = [new AwsError('RequestThrottledException', 'slow down'), 'lost'] as const;
  let count = 0;
  double.fault = ({ operation }) => (operation === 'StartSnapshot' ? faults[count++] : undefined);
  await assert.rejects(makeSnapshot(ebs), { name: 'RequestThrottledException' });
  await assert.rejects(makeSnapshot(ebs));
  const id = await makeSnapshot(ebs);
  assert.deepEqual(
    double
      .region()
      .snapshots.all()
      .map((one) => one.id),
    [id],
  );
  const lists = [];
  for (let turn = 0; turn < 3; turn++) {
    lists.push((await ec2.send(new DescribeSnapshotsCommand({ OwnerIds: ['self'] }))).Snapshots?.length);
  }
  assert.deepEqual(lists, [0, 0, 1]);
});
