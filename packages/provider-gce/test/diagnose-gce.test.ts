// Not a unit test: it starts servers.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CheckResult } from '@nodepool-builder/image-builder';
import { GoogleError } from '../../../test/doubles/gce/model.ts';
import { type GceFixture, gceFixture, SECRET } from './gce-fixture.ts';

async function diagnose(fixture: GceFixture): Promise<readonly CheckResult[]> {
  return await Array.fromAsync(fixture.open().diagnose());
}

test('the Compute Engine diagnosis finds everything in order, and changes nothing', async (t) => {
  const fixture = await gceFixture(t);
  assert.deepEqual(await diagnose(fixture), [
    {
      subject: 'credentials of provider ci',
      status: 'ok',
      message: 'Compute Engine accepts them in project ci-project',
    },
    { subject: 'permissions of provider ci', status: 'ok', message: 'no permission is missing' },
    { subject: 'bucket images of provider ci', status: 'ok', message: 'no permission is missing' },
    { subject: 'quota of images of provider ci', status: 'ok', message: '0 of 100 are used' },
  ]);
  const operations = fixture.double.requests.map(({ operation }) => operation);
  assert.deepEqual(operations, [
    'Images.List',
    'POST /v3/projects/ci-project:testIamPermissions',
    'GET /storage/v1/b/images/iam/testPermissions',
    'Projects.Get',
  ]);
});

test('the Compute Engine diagnosis names missing permissions', async (t) => {
  const fixture = await gceFixture(t);
  const missing = ['compute.images.create', 'compute.images.deprecate', 'storage.objects.delete'];
  for (const permission of missing) fixture.double.missingPermissions.add(permission);
  const problems = (await diagnose(fixture)).filter(({ status }) => status === 'problem');
  assert.deepEqual(
    problems.map(({ message }) => message),
    ['missing: compute.images.create, compute.images.deprecate', 'missing: storage.objects.delete'],
  );
});

test('the Compute Engine diagnosis reports problems with the bucket, the quota and the credentials', async (t) => {
  const fixture = await gceFixture(t);
  const { double } = fixture;
  double.storage.missingBuckets.add('images');
  double.imageQuota = 0;
  const problems = (await diagnose(fixture)).filter(({ status }) => status === 'problem');
  assert.deepEqual(
    problems.map(({ subject }) => subject),
    ['bucket images of provider ci', 'quota of images of provider ci'],
  );
  assert.match(problems[0]?.message ?? '', /The specified bucket does not exist/);

  double.fault = () => new GoogleError(401, 'authError', 'Invalid Credentials');
  const refused = await diagnose(fixture);
  assert.deepEqual(
    refused.map(({ subject, status }) => [subject, status]),
    [['credentials of provider ci', 'problem']],
  );
  assert.match(refused[0]?.message ?? '', /Invalid Credentials/);
  assert.ok(!JSON.stringify(refused).includes(SECRET));
});

test('the Compute Engine diagnosis continues where it lacks a permission', async (t) => {
  const fixture = await gceFixture(t);
  const { double } = fixture;
  double.missingPermissions.add('compute.projects.get');
  double.fault = ({ operation }) =>
    operation.startsWith('POST /v3/') ? new GoogleError(403, 'forbidden', 'API is disabled') : undefined;
  const results = await diagnose(fixture);
  assert.deepEqual(
    results.map(({ status }) => status),
    ['ok', 'warning', 'ok'],
  );
  assert.match(results[1]?.message ?? '', /cannot be queried.*API is disabled/);
});
