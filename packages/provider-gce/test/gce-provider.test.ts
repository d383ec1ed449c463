// Not a unit test: it starts servers and programs, and kills them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CloudError } from '@nodepool-builder/image-builder/plugin';
import { GoogleError } from '../../../test/doubles/gce/model.ts';
import { waitUntil } from '../../../test/fixtures/wait-until.ts';
import { gceFixture, requestFor, SECRET } from './gce-fixture.ts';

test('a failed import in Compute Engine reports its reasons and leaves nothing', async (t) => {
  const fixture = await gceFixture(t);
  const { double, lines } = fixture;
  double.importError = () => ({ code: 'INVALID_IMAGE', message: 'The tar archive is not a valid image.' });
  await assert.rejects(fixture.open().upload(await requestFor(fixture)), (error) => {
    assert.ok(error instanceof CloudError);
    assert.equal(error.code, 'image-failed');
    assert.match(
      error.message,
      /image debian-debian-0000000001: The tar archive is not a valid image\. \(INVALID_IMAGE\)/,
    );
    return true;
  });
  assert.deepEqual([double.images.length, double.storage.objects.size], [0, 0]);
  assert.ok(!lines.join('\n').includes(SECRET));
});

test('a Google rejection causes an error with its reason', async (t) => {
  const fixture = await gceFixture(t);
  const { double } = fixture;
  const request = await requestFor(fixture);
  const cases = [
    [new GoogleError(403, 'forbidden', "Required 'compute.images.create' permission"), 'forbidden'],
    [
      new GoogleError(403, 'quotaExceeded', "Quota 'IMAGES' exceeded. Limit: 100.0 globally."),
      'quota-exceeded',
    ],
  ] as const;
  for (const [injected, code] of cases) {
    double.fault = ({ operation }) => (operation === 'Images.Insert' ? injected : undefined);
    await assert.rejects(fixture.open().upload(request), (error) => {
      assert.ok(error instanceof CloudError);
      assert.equal(error.code, code);
      assert.ok(error.message.includes(injected.message));
      assert.ok(!error.message.includes(SECRET));
      return true;
    });
    assert.deepEqual([double.images.length, double.storage.objects.size], [0, 0]);
  }
});

test('a lost response to Compute Engine’s image request results in one image', async (t) => {
  const fixture = await gceFixture(t, { pendingReads: 1 });
  const { double } = fixture;
  let isLost = false;
  double.fault = ({ operation }) => {
    if (operation !== 'Images.Insert' || isLost) return undefined;
    isLost = true;
    return 'lost';
  };
  const request = await requestFor(fixture);
  const provider = fixture.open();
  const first = await provider.upload(request).catch((error: unknown) => error);
  if (first instanceof Error) await provider.upload(request);
  assert.equal(double.images.length, 1);
});

test('a shared upload to Compute Engine that is aborted keeps an image that another process creates', async (t) => {
  const fixture = await gceFixture(t, { pendingReads: 40 });
  const { double } = fixture;
  const request = await requestFor(fixture, { shared: true });
  const other = fixture.open().upload(request);
  await waitUntil('the first image', () => double.images.length === 1);
  const abort = new AbortController();
  double.fault = ({ operation }) => {
    if (operation === 'Images.List') abort.abort();
    return undefined;
  };
  await assert.rejects(fixture.open().upload(request, { signal: abort.signal }), { name: 'AbortError' });
  const { externalId } = await other;
  assert.deepEqual(
    (await fixture.open().list()).map((image) => image.externalId),
    [externalId],
  );
  assert.equal(double.storage.objects.size, 0);
});

test('a shared upload to Compute Engine whose import fails leaves no image', async (t) => {
  const fixture = await gceFixture(t);
  const { double } = fixture;
  double.importError = () => ({ code: 'INVALID_IMAGE', message: 'The tar archive is not a valid image.' });
  const request = await requestFor(fixture, { shared: true });
  await assert.rejects(fixture.open().upload(request), { code: 'image-failed' });
  assert.deepEqual(double.images, []);
  double.importError = undefined;
  await fixture.open().upload(request);
  assert.deepEqual([double.images.length, double.storage.objects.size], [1, 0]);
});

test('a Compute Engine image with a family is marked obsolete before it is deleted', async (t) => {
  const fixture = await gceFixture(t, { pendingReads: 1 });
  const provider = fixture.open({ 'image-family': 'debian-ci' });
  const { externalId } = await provider.upload(await requestFor(fixture));
  const [candidate] = await provider.findImages({ properties: new Map([['family', ['debian-ci']]]) });
  assert.equal(candidate?.externalId, externalId);
  fixture.double.requests.length = 0;
  await provider.delete(externalId);
  const changes = fixture.double.requests
    .map(({ operation }) => operation)
    .filter((operation) => !operation.endsWith('.Get'));
  assert.deepEqual(changes, ['Images.Deprecate', 'Images.Delete']);
  assert.deepEqual(fixture.double.images, []);
});

test('other projects’ images in Compute Engine are found only by a filter that names the project, and never deleted', async (t) => {
  const fixture = await gceFixture(t);
  const { double } = fixture;
  const provider = fixture.open();
  const add = (project: string, name: string, deprecated?: object): void => {
    const resource = {
      name,
      family: 'debian-13',
      creationTimestamp: '2026-05-01T00:00:00Z',
      ...(deprecated && { deprecated }),
    };
    double.images.push({ project, resource, status: 'READY', pendingReads: 0, isDeleted: false });
  };
  add('ci-project', 'debian-own');
  add('ci-project', 'debian-old', { state: 'DEPRECATED' });
  add('debian-cloud', 'debian-13-v1');
  const idsOf = async (owner?: string[]): Promise<string[]> => {
    const found = await provider.findImages({ name: ['debian-*'], ...(owner && { owner }) });
    return found.filter(({ isUsable }) => isUsable).map(({ externalId }) => externalId);
  };
  assert.deepEqual(await idsOf(), ['debian-own']);
  assert.deepEqual(await idsOf(['debian-cloud']), ['projects/debian-cloud/global/images/debian-13-v1']);
  await assert.rejects(provider.delete('debian-own'), { code: 'not-ours' });
  assert.deepEqual(await provider.list(), []);
});
