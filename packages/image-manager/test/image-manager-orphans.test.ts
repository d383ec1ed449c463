import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitUntil } from '../../../test/fixtures/wait-until.ts';
import { ManagerSite } from './manager-site.ts';

const timing = { orphanScanInterval: 0.03 };

test('orphans are deleted, and images of other owners or without a mark stay', async (t) => {
  const site = await ManagerSite.start(t, { providers: ['east'], timing });
  const builder = await site.builder();
  const east = site.provider('east');
  const { owner } = site.store;
  east.plant({ externalId: 'orphan', uploadId: `0000000099-${owner}` });
  east.plant({ externalId: 'of another owner', uploadId: '0000000099-aaaaaaaa' });
  east.plant({ externalId: 'of a foreign tool', uploadId: 'upload-7' });
  east.plant({ externalId: 'without a mark' });
  const orphan = `debian-0000000098-${owner}`;
  builder.images.add(orphan).add('debian-1').add('debian-0000000098-aaaaaaaa');
  builder.offer();
  site.manage();
  await waitUntil(
    'the orphans to be deleted',
    () => !east.images.has('orphan') && !builder.images.has(orphan),
  );
  const imageId = await site.untilInUse();
  const seen = east.listings;
  await waitUntil('two more scans', () => east.listings >= seen + 2);
  assert.deepEqual(
    [...east.images.keys()].filter((id) => !id.startsWith('east/')),
    ['of another owner', 'of a foreign tool', 'without a mark'],
  );
  assert.deepEqual([...builder.images], ['debian-1', 'debian-0000000098-aaaaaaaa', imageId]);
  assert.equal(site.countLogged(/^warn orphan: /), 2);
});

test('an image that was deleted in the provider is uploaded again', async (t) => {
  const site = await ManagerSite.start(t, { providers: ['east'], timing });
  const builder = await site.builder();
  const east = site.provider('east');
  site.manage();
  const imageId = await site.untilInUse();
  await site.until('the upload to be seen', ({ uploads }) => [...uploads.values()].every(({ seen }) => seen));
  const [lost = ''] = east.images.keys();
  east.images.delete(lost);
  await waitUntil('another upload', () => east.images.size === 1);
  assert.equal(await site.untilInUse(), imageId);
  assert.ok(!east.images.has(lost));
  assert.equal(site.countLogged(/^warn upload .*: east no longer lists image /), 1);
  assert.equal(builder.jobsOf('image-build').length, 1);
});

test('an image that is listed again after its second upload stays, and so does the second image', async (t) => {
  const site = await ManagerSite.start(t, { providers: ['east'], timing });
  const builder = await site.builder();
  const east = site.provider('east');
  site.manage();
  const imageId = await site.untilInUse();
  await site.until('the upload to be seen', ({ uploads }) => [...uploads.values()].every(({ seen }) => seen));
  const [first] = east.images.keys();
  east.list = async () => [];
  await site.until('a second upload', ({ uploads }) => {
    return [...uploads.values()].filter(({ state }) => state === 'ready' || state === 'missing').length === 2;
  });
  Reflect.deleteProperty(east, 'list');
  await site.until('both uploads to be ready', ({ uploads }) =>
    [...uploads.values()].every(({ state, seen }) => state === 'ready' && seen),
  );
  const before = east.listings;
  await waitUntil('three more scans', () => east.listings >= before + 3);
  assert.equal(east.images.size, 2);
  assert.ok(east.images.has(first ?? ''));
  assert.deepEqual(new Set(east.imageIds), new Set([imageId]));
  assert.equal(builder.jobsOf('image-build').length, 1);
  assert.equal(site.countLogged(/orphan/), 0);
});

test('an image that is listed again before its second upload is not uploaded again', async (t) => {
  const site = await ManagerSite.start(t, { providers: ['east'], timing });
  const builder = await site.builder();
  const east = site.provider('east');
  site.manage();
  await site.untilInUse();
  await site.until('the upload to be seen', ({ uploads }) => [...uploads.values()].every(({ seen }) => seen));
  await builder.die();
  east.list = async () => [];
  await site.until('the upload to be missing', ({ uploads }) =>
    [...uploads.values()].every(({ state }) => state === 'missing'),
  );
  Reflect.deleteProperty(east, 'list');
  await site.until('the upload to be ready', ({ uploads }) =>
    [...uploads.values()].every(({ state }) => state === 'ready'),
  );
  assert.equal(builder.jobsOf('image-upload').length, 1);
  assert.equal(east.images.size, 1);
});

test('a provider that never lists our uploads causes one warning and nothing else', async (t) => {
  const site = await ManagerSite.start(t, { providers: ['east'], timing });
  const builder = await site.builder();
  const east = site.provider('east');
  let scans = 0;
  east.list = async () => {
    scans += 1;
    return [];
  };
  site.manage();
  await site.untilInUse();
  await site.logged(/^warn provider east does not list upload/);
  const before = scans;
  await waitUntil('more scans', () => scans >= before + 4);
  assert.equal(site.countLogged(/^warn /), 1);
  assert.equal(builder.jobsOf('image-upload').length, 1);
  assert.equal(east.images.size, 1);
});

test('a provider that cannot be listed causes a warning, and orphans elsewhere are deleted', async (t) => {
  const site = await ManagerSite.start(t, { timing });
  await site.builder();
  site.provider('west').beforeList = () => {
    throw new Error('401');
  };
  site.provider('east').plant({ externalId: 'orphan', uploadId: `0000000099-${site.store.owner}` });
  site.manage();
  await waitUntil('the orphan to be deleted', () => !site.provider('east').images.has('orphan'));
  await site.logged(/^warn cannot list provider west: 401/);
  await site.untilInUse();
});
