// Not a unit test: it starts servers.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CloudError } from '@nodepool-builder/image-builder/plugin';
import { gceFixture, requestFor } from './gce-fixture.ts';

const FAMILY = { 'image-family': 'debian-ci' };

test('a deletion in Compute Engine waits until the image is deprecated', async (t) => {
  const fixture = await gceFixture(t, { pendingReads: 3 });
  const { double } = fixture;
  const provider = fixture.open(FAMILY);
  const { externalId } = await provider.upload(await requestFor(fixture));
  const states: unknown[] = [];
  double.fault = ({ operation }) => {
    if (operation === 'Images.Delete') states.push(double.images[0]?.resource.deprecated);
    return undefined;
  };
  await provider.delete(externalId);
  assert.deepEqual(states, [{ state: 'OBSOLETE' }]);
  assert.deepEqual(double.images, []);
});

test('a failed deprecation in Compute Engine stops the deletion with its reason', async (t) => {
  const fixture = await gceFixture(t, { pendingReads: 1 });
  const { double } = fixture;
  const provider = fixture.open(FAMILY);
  const { externalId } = await provider.upload(await requestFor(fixture));
  double.deprecateError = {
    code: 'PERMISSIONS_ERROR',
    message: "Required 'compute.images.deprecate' permission for 'projects/ci-project/global/images/debian'",
    status: 403,
  };
  await assert.rejects(provider.delete(externalId), (error) => {
    assert.ok(error instanceof CloudError);
    assert.equal(error.code, 'forbidden');
    assert.match(error.message, /^provider ci: deprecation of image .*Required 'compute\.images\.deprecate'/);
    return true;
  });
  assert.equal(double.images.length, 1);
  double.deprecateError = undefined;
  await provider.delete(externalId);
  assert.deepEqual(double.images, []);
});

test('a failed import in Compute Engine is removed without a deprecation', async (t) => {
  const fixture = await gceFixture(t);
  const { double } = fixture;
  double.importError = () => ({ code: 'INVALID_IMAGE', message: 'The tar archive is not a valid image.' });
  await assert.rejects(fixture.open(FAMILY).upload(await requestFor(fixture)), { code: 'image-failed' });
  assert.deepEqual(double.images, []);
  assert.ok(!double.requests.some(({ operation }) => operation === 'Images.Deprecate'));
});

const QUOTA = {
  metricName: 'compute.googleapis.com/images',
  limitName: 'IMAGES-per-project',
  limit: 100,
  dimensions: { region: 'global' },
};

for (const [what, failure, code, retriable, message] of [
  [
    'a quota',
    { code: 'QUOTA_EXCEEDED', message: "Quota 'IMAGES' exceeded.", errorDetails: [{ quotaInfo: QUOTA }] },
    'quota-exceeded',
    false,
    /Quota 'IMAGES' exceeded\. \(QUOTA_EXCEEDED; quota compute\.googleapis\.com\/images, IMAGES-per-project, limit 100, region global\); delete what is not needed/,
  ],
  [
    'a permission',
    { code: 'PERMISSIONS_ERROR', message: "Required 'storage.objects.get' permission for 'rawDisk.source'" },
    'forbidden',
    false,
    /Required 'storage\.objects\.get' permission for 'rawDisk\.source' \(PERMISSIONS_ERROR\); give the credentials this permission/,
  ],
  ['a status 403', { code: 'OTHER', message: 'No.', status: 403 }, 'forbidden', false, /No\. \(OTHER\)/],
  [
    'a rate',
    { code: 'RATE_LIMIT_EXCEEDED', message: 'Too many requests.' },
    'rate-limited',
    true,
    /Too many requests\. \(RATE_LIMIT_EXCEEDED\)$/,
  ],
] as const) {
  test(`a Compute Engine operation that fails because of ${what} reports it`, async (t) => {
    const fixture = await gceFixture(t);
    fixture.double.importError = () => failure;
    await assert.rejects(fixture.open().upload(await requestFor(fixture)), (error) => {
      assert.ok(error instanceof CloudError);
      assert.deepEqual([error.code, error.retriable], [code, retriable]);
      assert.match(error.message, message);
      return true;
    });
    assert.deepEqual(fixture.double.images, []);
  });
}

for (const [architecture, expected] of [
  ['amd64', 'X86_64'],
  ['x86_64', 'X86_64'],
  ['arm64', 'ARM64'],
  ['aarch64', 'ARM64'],
] as const) {
  test(`the architecture ${architecture} becomes ${expected} in Compute Engine`, async (t) => {
    const fixture = await gceFixture(t);
    const provider = fixture.open();
    await provider.upload(await requestFor(fixture, { metadata: { architecture } }));
    assert.equal(fixture.double.images[0]?.resource.architecture, expected);
    const [candidate] = await provider.findImages({});
    assert.equal(candidate?.architecture, expected.toLowerCase());
  });
}
