// Not a unit test: it starts servers.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ImageError, type ImageErrorCode, type LaunchRequest } from '@nodepool-builder/image-builder';
import { CloudError } from '@nodepool-builder/image-builder/plugin';
import { AwsError } from '../../../../test/doubles/aws/model.ts';
import type { Region } from '../../../../test/doubles/aws/region.ts';
import { smallestType } from '../../src/instance/launch-instance.ts';
import { SECRET } from '../aws-fixture.ts';
import { addImage, type InstanceFixture, instanceFixture, PUBLIC_KEY } from './instance-fixture.ts';

const REQUEST: LaunchRequest = { buildId: 'debian-1', image: 'base', publicKey: PUBLIC_KEY, port: 22 };

function fails(code: ImageErrorCode, words: RegExp): (error: unknown) => boolean {
  return (error) => {
    assert.ok(error instanceof ImageError, String(error));
    assert.equal(error.code, code, error.message);
    assert.match(error.message, words);
    assert.doesNotMatch(error.message, new RegExp(SECRET));
    return true;
  };
}

/** Returns the resources in a region. */
function resources({ double }: InstanceFixture): object {
  const region = double.region();
  const instances = region.instances.all().filter(({ state }) => !/terminated|shutting-down/.test(state));
  return { instances: instances.length, keyPairs: region.keyPairs.all().length };
}

const NOTHING = { instances: 0, keyPairs: 0 };

function requestOf(region: Region): Readonly<Record<string, unknown>> {
  const [instance] = region.instances.all().slice(-1);
  return { ...instance?.request };
}

test('an AWS instance has the settings and the request, and its volumes are deleted with it', async (t) => {
  const fixture = await instanceFixture(t);
  const region = fixture.double.region();
  const newest = addImage(region, 'base');
  const [older, newer] = region.images.all();
  assert.ok(older && newer);
  Object.assign(older, { createdAt: new Date(0) });
  const provider = fixture.openInstances(
    {
      'instance-type': 'm5.large',
      'subnet-id': 'subnet-1',
      'security-group-id': 'sg-1',
      'iam-instance-profile': 'builder',
      imdsv2: 'required',
      tags: { team: 'infra' },
      'volume-size': 20,
      throughput: 250,
    },
    { scope: 'a1' },
  );
  const instance = await provider.launch({ ...REQUEST, userData: '#cloud-config' });
  const { ClientToken: token, KeyName: key, TagSpecifications: tags, ...request } = requestOf(region);
  assert.deepEqual(request, {
    MinCount: 1,
    MaxCount: 1,
    ImageId: newest,
    InstanceType: 'm5.large',
    InstanceInitiatedShutdownBehavior: 'stop',
    UserData: Buffer.from('#cloud-config').toString('base64'),
    MetadataOptions: { HttpTokens: 'required' },
    IamInstanceProfile: { Name: 'builder' },
    BlockDeviceMappings: [
      {
        DeviceName: '/dev/sda1',
        Ebs: { DeleteOnTermination: true, VolumeType: 'gp3', VolumeSize: 20, Throughput: 250 },
      },
    ],
    SubnetId: 'subnet-1',
    SecurityGroupIds: ['sg-1'],
  });
  assert.equal(token, key);
  const [own, volume] = tags as { ResourceType: string; Tags: { Key: string; Value: string }[] }[];
  assert.deepEqual(own?.Tags, volume?.Tags);
  const values = Object.fromEntries((own?.Tags ?? []).map(({ Key, Value }) => [Key, Value]));
  const { nodepool_builder_owner: owner = '', ...others } = values;
  assert.match(owner, /^[0-9a-f]{12}$/);
  assert.deepEqual(others, {
    team: 'infra',
    Name: 'nodepool-builder debian-1',
    nodepool_provider_name: 'ci',
    nodepool_build_id: 'debian-1',
    nodepool_builder_scope: 'a1',
    nodepool_builder_launch: key,
    nodepool_builder_port: '22',
    nodepool_builder_launched_at: instance.launchedAt.toISOString(),
  });
  const [pair] = region.keyPairs.all();
  assert.deepEqual([pair?.name, pair?.publicKey], [key, PUBLIC_KEY]);

  const inOther = fixture.openInstances({}, { scope: 'a2' });
  assert.deepEqual(await inOther.list(), []);
  assert.deepEqual(await fixture.openInstances({}, { owner: 'another' }).list(), []);
  assert.deepEqual(await fixture.openInstances({ name: 'west' }).list(), []);
  assert.deepEqual(
    (await fixture.openInstances().list()).map(({ id }) => id),
    [instance.id],
  );
  await instance.destroy();
  assert.deepEqual(resources(fixture), NOTHING);
});

test('an AWS instance’s addresses are requested with its network interface', async (t) => {
  const fixture = await instanceFixture(t);
  const settings = { 'subnet-id': 'subnet-1', 'security-group-id': ['sg-1', 'sg-2'], 'public-ipv4': false };
  await fixture.openInstances({ ...settings, 'public-ipv6': true }).launch(REQUEST);
  const { NetworkInterfaces: interfaces, SubnetId, SecurityGroupIds } = requestOf(fixture.double.region());
  assert.deepEqual(
    [interfaces, SubnetId, SecurityGroupIds],
    [
      [
        {
          DeviceIndex: 0,
          SubnetId: 'subnet-1',
          Groups: ['sg-1', 'sg-2'],
          AssociatePublicIpAddress: false,
          Ipv6AddressCount: 1,
        },
      ],
      undefined,
      undefined,
    ],
  );
});

test('an AWS instance gets the smallest type that fits', async (t) => {
  const fixture = await instanceFixture(t, { pageSize: 2 });
  const region = fixture.double.region();
  addImage(region, 'arm', 'arm64');
  const provider = fixture.openInstances();
  const chosen = async (request: Partial<LaunchRequest>): Promise<unknown> => {
    await provider.launch({ ...REQUEST, ...request });
    return requestOf(region).InstanceType;
  };
  assert.equal(await chosen({}), 't3.small');
  assert.equal(await chosen({ minRam: 2049 }), 'm5.large');
  assert.equal(await chosen({ minRam: 1, nameFilter: 'nano' }), 't3.nano');
  assert.equal(await chosen({ image: 'arm' }), 't4g.small');
  await assert.rejects(
    chosen({ minRam: 9000, nameFilter: 't3' }),
    fails('launch-failed', /no instance type for x86_64 with at least 9000 MiB and "t3" in its name/),
  );
  assert.equal(smallestType([], 1), undefined);
});

test('a failed launch in AWS reports the reason, and leaves nothing', async (t) => {
  const fixture = await instanceFixture(t);
  const { double, openInstances } = fixture;
  const provider = openInstances();
  const codes: [string, string, RegExp, string][] = [
    [
      'VcpuLimitExceeded',
      'You have requested more vCPU capacity',
      /request a larger quota/,
      'quota-exceeded',
    ],
    ['InsufficientInstanceCapacity', 'We have no capacity', /no capacity/, 'quota-exceeded'],
    ['UnauthorizedOperation', 'You are not authorized: ec2:RunInstances', /this permission/, 'forbidden'],
  ];
  for (const [code, message, words, kind] of codes) {
    double.fault = ({ operation }) =>
      operation === 'RunInstances' ? new AwsError(code, message, 403) : undefined;
    await assert.rejects(provider.launch(REQUEST), (error: Error) => {
      assert.ok(fails('launch-failed', words)(error));
      return error.cause instanceof CloudError && error.cause.code === kind;
    });
    assert.deepEqual(resources(fixture), NOTHING);
  }
  double.fault = () => undefined;
  double.region().launchError = 'Internal error on launch';
  await assert.rejects(
    provider.launch(REQUEST),
    fails('launch-failed', /is terminated: Internal error on launch/),
  );
  assert.deepEqual(resources(fixture), NOTHING);
  assert.deepEqual(await provider.list(), []);
  await assert.rejects(
    openInstances({ 'instance-type': 't4g.small' }).launch(REQUEST),
    fails('launch-failed', /architecture 'arm64' .* does not match/),
  );
  assert.deepEqual(resources(fixture), NOTHING);
});

test('a lost response from AWS launches no second instance', async (t) => {
  const fixture = await instanceFixture(t);
  const { double, openInstances } = fixture;
  const lost = new Set(['ImportKeyPair', 'RunInstances', 'CreateImage', 'TerminateInstances']);
  double.fault = ({ operation }) => (lost.delete(operation) ? 'lost' : undefined);
  const instance = await openInstances().launch(REQUEST);
  assert.deepEqual(resources(fixture), { instances: 1, keyPairs: 1 });
  await instance.stop();
  const { externalId } = await instance.capture({ imageId: 'debian-1' });
  const { images } = double.region();
  assert.deepEqual(
    images.all().map(({ id, name }) => [id, name]),
    [
      [images.all()[0]?.id, 'base'],
      [externalId, `debian-1-${instance.id}`],
    ],
  );
  await instance.destroy();
  assert.deepEqual([...lost], []);
  assert.deepEqual(resources(fixture), NOTHING);
});

test('a launch finds its new AWS instance although the list lags', async (t) => {
  const fixture = await instanceFixture(t, { lag: 2 });
  const region = fixture.double.region();
  for (const image of region.images.all()) image.hiddenLists = 0;
  const provider = fixture.openInstances();
  const instance = await provider.launch(REQUEST);
  await instance.stop();
  const { externalId } = await instance.capture({ imageId: 'debian-1' });
  assert.notEqual(externalId, undefined);
  await instance.destroy();
  assert.deepEqual(resources(fixture), NOTHING);
});

test('an AWS instance that a process left is listed with its build, and removed', async (t) => {
  const fixture = await instanceFixture(t);
  const { double, openInstances } = fixture;
  // As if the process died with the response to RunInstances, or before it.
  double.fault = ({ operation }) =>
    operation === 'RunInstances' || operation === 'DeleteKeyPair'
      ? new AwsError('UnauthorizedOperation', 'not now', 403)
      : undefined;
  await assert.rejects(openInstances().launch(REQUEST), fails('launch-failed', /not now/));
  assert.ok(fixture.lines.some((line) => /cleanup after the failed launch .* failed/.test(line)));
  double.fault = () => undefined;
  assert.deepEqual(resources(fixture), { instances: 0, keyPairs: 1 });
  const [left, ...others] = await openInstances().list();
  assert.ok(left !== undefined);
  assert.deepEqual(others, []);
  assert.equal(left.buildId, 'debian-1');
  assert.equal(await left.state(), 'failed');
  await assert.rejects(left.consoleLog(), fails('instance-failed', /does not exist/));
  await left.destroy();
  assert.deepEqual(resources(fixture), NOTHING);

  await openInstances().launch(REQUEST);
  for (const pair of double.region().keyPairs.all()) double.region().keyPairs.delete(pair.id);
  const [found] = await openInstances().list();
  assert.equal(found?.buildId, 'debian-1');
  double.fault = ({ operation }) =>
    operation === 'TerminateInstances'
      ? new AwsError('OperationNotPermitted', 'it may not be terminated', 400)
      : undefined;
  await assert.rejects(
    found?.destroy() ?? Promise.resolve(),
    fails('cleanup-failed', /may not be terminated/),
  );
  double.fault = () => undefined;
  await found?.destroy();
  assert.deepEqual(resources(fixture), NOTHING);
});
