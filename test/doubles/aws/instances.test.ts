// Not a unit test: it starts servers.
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { EBS } from '@aws-sdk/client-ebs';
import { EC2, type RunInstancesCommandInput } from '@aws-sdk/client-ec2';
import { STS } from '@aws-sdk/client-sts';
import { addImage, PUBLIC_KEY } from '../../../packages/provider-aws/test/instance/instance-fixture.ts';
import { AwsDouble } from './aws-double.ts';
import type { AwsDoubleOptions } from './region.ts';

async function open(t: TestContext, options: Partial<AwsDoubleOptions> = {}) {
  const double = await AwsDouble.start(options);
  t.after(() => double[Symbol.asyncDispose]());
  const settings = {
    endpoint: double.endpoint,
    region: 'us-east-1',
    credentials: { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'secret' },
    maxAttempts: 1,
  };
  const [ec2, ebs, sts] = [new EC2(settings), new EBS(settings), new STS(settings)];
  t.after(() => {
    for (const client of [ec2, ebs, sts]) client.destroy();
  });
  return { double, ec2, ebs, sts };
}

test('a launch that AWS would reject is rejected by its double', async (t) => {
  const { double, ec2 } = await open(t);
  const region = double.region();
  const ImageId = addImage(region, 'linux');
  const windows = addImage(region, 'windows', 'x86_64', 'Windows');
  const PublicKeyMaterial = Buffer.from(PUBLIC_KEY);
  await ec2.importKeyPair({ KeyName: 'key', PublicKeyMaterial });
  await assert.rejects(ec2.importKeyPair({ KeyName: 'key', PublicKeyMaterial }), {
    name: 'InvalidKeyPair.Duplicate',
  });
  const good = { ImageId, InstanceType: 't3.nano', MinCount: 1, MaxCount: 1, ClientToken: 'a' } as const;
  const refused: [string, Partial<RunInstancesCommandInput>][] = [
    ['InvalidAMIID.NotFound', { ImageId: 'ami-00000000000000000' }],
    ['InvalidParameterValue', { InstanceType: 't4g.small' }],
    ['InvalidParameterValue', { InstanceType: 'x9.huge' as 't3.nano' }],
    ['InvalidKeyPair.NotFound', { KeyName: 'absent' }],
    ['InvalidParameterCombination', { ImageId: windows, KeyName: 'key' }],
    ['InvalidParameterCombination', { SubnetId: 'subnet-1', NetworkInterfaces: [{ DeviceIndex: 0 }] }],
    ['InvalidParameterValue', { TagSpecifications: [{ ResourceType: 'image', Tags: [] }] }],
    ['DryRunOperation', { DryRun: true }],
  ];
  for (const [name, change] of refused) {
    await assert.rejects(ec2.runInstances({ ...good, ...change }), { name }, JSON.stringify(change));
  }
  assert.deepEqual(region.instances.all(), []);
  const [one, other] = [await ec2.runInstances(good), await ec2.runInstances(good)];
  assert.equal(one.Instances?.[0]?.InstanceId, other.Instances?.[0]?.InstanceId, 'the token is the same');
  await assert.rejects(ec2.runInstances({ ...good, InstanceType: 't3.small' }), {
    name: 'IdempotentParameterMismatch',
  });
});

test('an instance in the AWS double is unknown for a while, changes its state, and stays listed', async (t) => {
  const { double, ec2 } = await open(t, { lag: 1 });
  const ImageId = addImage(double.region(), 'linux');
  const launched = await ec2.runInstances({ ImageId, InstanceType: 't3.nano', MinCount: 1, MaxCount: 1 });
  const InstanceIds = [launched.Instances?.[0]?.InstanceId ?? ''];
  const state = async (): Promise<string | undefined> => {
    const { Reservations: [reservation] = [] } = await ec2.describeInstances({ InstanceIds });
    return reservation?.Instances?.[0]?.State?.Name;
  };
  const becomes = async (name: string): Promise<void> => {
    while ((await state()) !== name);
  };
  assert.equal(launched.Instances?.[0]?.State?.Name, 'pending');
  await assert.rejects(state(), { name: 'InvalidInstanceID.NotFound' });
  await becomes('running');
  await assert.rejects(ec2.createImage({ InstanceId: InstanceIds[0], Name: 'x' }), {
    name: 'InvalidAMIName.Malformed',
  });
  const stopping = await ec2.stopInstances({ InstanceIds });
  assert.equal(stopping.StoppingInstances?.[0]?.PreviousState?.Name, 'running');
  await becomes('stopped');
  await ec2.terminateInstances({ InstanceIds });
  await becomes('terminated');
  await assert.rejects(ec2.stopInstances({ InstanceIds }), { name: 'IncorrectInstanceState' });
});

test('a captured snapshot’s blocks in the AWS double need their tokens, and the caller has a name', async (t) => {
  const { double, ec2, ebs, sts } = await open(t);
  const ImageId = addImage(double.region(), 'linux');
  const launched = await ec2.runInstances({ ImageId, InstanceType: 't3.nano', MinCount: 1, MaxCount: 1 });
  const [{ InstanceId = '' } = {}] = launched.Instances ?? [];
  while (double.region().instances.get(InstanceId).state !== 'running') await new Promise(setImmediate);
  const image = await ec2.createImage({ InstanceId, Name: 'captured' });
  const [SnapshotId = ''] = double.region().images.get(image.ImageId).snapshots;
  const { Blocks: [block] = [] } = await ebs.listSnapshotBlocks({ SnapshotId });
  const request = { SnapshotId, BlockIndex: 0 };
  await assert.rejects(ebs.getSnapshotBlock({ ...request, BlockToken: 'another' }), {
    name: 'ValidationException',
  });
  const response = await ebs.getSnapshotBlock({ ...request, BlockToken: block?.BlockToken });
  assert.equal((await response.BlockData?.transformToByteArray())?.length, response.DataLength);
  assert.equal((await sts.getCallerIdentity({})).Account, '123456789012');
});
