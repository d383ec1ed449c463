// Not a unit test: it starts servers.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import type { CheckResult } from '@nodepool-builder/image-builder';
import type { AwsFault } from '../../../test/doubles/aws/aws-double.ts';
import { AwsError } from '../../../test/doubles/aws/model.ts';
import { SECRET } from './aws-fixture.ts';
import { instanceFixture } from './instance/instance-fixture.ts';

async function collect(results: AsyncIterable<CheckResult>): Promise<CheckResult[]> {
  const all = await Array.fromAsync(results);
  assert.doesNotMatch(JSON.stringify(all), new RegExp(SECRET.replaceAll('/', '\\/')));
  return all;
}

/** Rejects operations as AWS does if the policy lacks them. */
function denying(...operations: string[]): AwsFault {
  return ({ operation }) =>
    operations.includes(operation)
      ? new AwsError('UnauthorizedOperation', 'You are not authorized to perform this operation.', 403)
      : undefined;
}

test('the AWS diagnosis tests permissions without changing anything', async (t) => {
  const { double, open, openInstances } = await instanceFixture(t);
  const region = double.region();
  const images = await collect(open({ 'copy-regions': ['eu-west-1'] }).diagnose());
  assert.deepEqual(
    images.map(({ subject, status, message }) => [subject, status, message]),
    [
      [
        'credentials of provider ci',
        'ok',
        'EC2 accepts them in us-east-1 as arn:aws:iam::123456789012:user/builder',
      ],
      [
        'permissions for images of provider ci',
        'ok',
        'AWS grants 5 of 8, and rejects none; AWS checks the other 3 only when they are used',
      ],
      ['copies to eu-west-1 of provider ci', 'ok', 'AWS grants 2 of 2, and rejects none'],
    ],
  );
  const instances = await collect(openInstances().diagnose());
  assert.deepEqual(
    instances.map(({ subject, status }) => [subject, status]),
    [
      ['credentials of provider ci', 'ok'],
      ['permissions for instances of provider ci', 'ok'],
      ['launches of provider ci', 'ok'],
    ],
  );
  assert.match(instances.at(-1)?.message ?? '', /^AWS would launch AMI ami-\w+ on t3\.small$/);
  for (const method of ['snapshot', 'image'] as const) {
    const [, permissions] = await collect(open({ 'import-method': method }).diagnose());
    assert.match(permissions?.message ?? '', /^AWS grants (\d) of \1/);
  }
  const { snapshots, keyPairs, snapshotImports, imageImports } = region;
  assert.equal(region.images.all().length, 1);
  assert.equal(snapshots.all().length, 1);
  const none = [region.instances, keyPairs, snapshotImports, imageImports].flatMap<unknown>((all) =>
    all.all(),
  );
  assert.deepEqual(none, []);
});

test('the AWS diagnosis names missing permissions', async (t) => {
  const { double, open, openInstances } = await instanceFixture(t);
  double.fault = (request) =>
    request.operation === 'PutSnapshotBlock'
      ? new AwsError('AccessDeniedException', 'not authorized to perform ebs:PutSnapshotBlock', 403)
      : denying('RegisterImage', 'TerminateInstances')(request);
  const missing = async (results: AsyncIterable<CheckResult>): Promise<unknown> =>
    (await collect(results)).flatMap(({ status, message, remedy }) =>
      status === 'problem' ? [[message, remedy]] : [],
    );
  const remedy = 'add these actions to the policy of the user or the role';
  assert.deepEqual(await missing(open().diagnose()), [
    ['lack ec2:RegisterImage, ebs:PutSnapshotBlock', remedy],
  ]);
  assert.deepEqual(await missing(openInstances().diagnose()), [['lack ec2:TerminateInstances', remedy]]);
});

test('the AWS diagnosis checks nothing else without valid credentials', async (t) => {
  const { double, open } = await instanceFixture(t);
  double.fault = () => new AwsError('ExpiredToken', 'The security token included is expired', 403);
  const [result, ...others] = await collect(open().diagnose());
  assert.deepEqual(others, []);
  assert.deepEqual([result?.subject, result?.status], ['credentials of provider ci', 'problem']);
  assert.match(result?.message ?? '', /The security token included is expired/);
  assert.match(result?.remedy ?? '', /check the credentials, and whether they have expired/);
  assert.equal(double.requests.length, 1);

  double.fault = ({ operation }) =>
    operation === 'GetCallerIdentity' ? new AwsError('InvalidAction', 'no such action') : undefined;
  const [credentials] = await collect(open().diagnose());
  assert.deepEqual([credentials?.status, credentials?.message], ['ok', 'EC2 accepts them in us-east-1']);

  double.fault = denying('DescribeImages');
  const [refused, ...rest] = await collect(open().diagnose());
  assert.deepEqual([refused?.status, rest], ['problem', []]);
  assert.match(refused?.message ?? '', /DescribeImages in us-east-1: You are not authorized/);
});

test('the AWS diagnosis finds a launch that AWS would reject before a build needs it', async (t) => {
  const { double, openInstances } = await instanceFixture(t);
  double.fault = ({ operation, input }) =>
    operation === 'RunInstances' && input.SubnetId === 'subnet-gone'
      ? new AwsError('InvalidSubnetID.NotFound', "The subnet ID 'subnet-gone' does not exist")
      : undefined;
  const launch = (await collect(openInstances({ 'subnet-id': 'subnet-gone' }).diagnose())).at(-1);
  assert.deepEqual([launch?.subject, launch?.status], ['launches of provider ci', 'problem']);
  assert.match(launch?.message ?? '', /The subnet ID 'subnet-gone' does not exist/);
  const region = double.region();
  for (const { id } of region.images.all()) region.images.delete(id);
  const untried = (await collect(openInstances().diagnose())).at(-1);
  assert.equal(untried?.message, 'cannot be checked: this account has no AMI');
});

test('the AWS diagnosis requires the bucket in the images’ region', async (t) => {
  const { open } = await instanceFixture(t);
  const server = createServer((request, response) => {
    const place = { here: 'us-east-1', there: 'eu-west-1' }[request.url?.split('/')[1] ?? ''];
    response
      .writeHead(place === undefined ? 404 : 200, { ...(place && { 'x-amz-bucket-region': place }) })
      .end();
  });
  t.after(() => server.close());
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const s3 = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const check = async (bucket: string): Promise<unknown> => {
    const settings = { 'import-method': 'snapshot', 'bucket-name': bucket, 's3-endpoint': s3 } as const;
    const { status, message } = (await collect(open(settings).diagnose())).at(-1) ?? {};
    return [status, message];
  };
  assert.deepEqual(await check('here'), ['ok', 'exists in us-east-1']);
  assert.deepEqual(await check('there'), ['problem', 'is in eu-west-1, not in us-east-1']);
  assert.deepEqual(await check('nowhere'), ['problem', 'does not exist']);
});
