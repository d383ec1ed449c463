import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitUntil } from '../../../test/fixtures/wait-until.ts';
import { Hold } from './hold.ts';
import { ManagerSite } from './manager-site.ts';

test('a manager that dies in the middle of a build: the next follows the same job', async (t) => {
  const site = await ManagerSite.start(t);
  const builder = await site.builder();
  const hold = new Hold();
  builder.beforeBuild = ({ signal }) => hold.wait(signal);
  const first = site.manage();
  await hold.reached;
  await first.stop();
  site.manage();
  await site.logged(/leading/);
  hold.release();
  await site.untilInUse();
  assert.equal(builder.jobsOf('image-build').length, 1);
});

test('a build that ended while no manager ran is ready, without another job', async (t) => {
  const site = await ManagerSite.start(t);
  const builder = await site.builder();
  const hold = new Hold();
  builder.beforeBuild = ({ signal }) => hold.wait(signal);
  const first = site.manage();
  await hold.reached;
  await first.stop();
  const [jobBefore] = builder.jobsOf('image-build');
  hold.release();
  await waitUntil('the end of the build', () => builder.endedJobs === 1);
  site.manage();
  const imageId = await site.untilInUse();
  assert.deepEqual(builder.jobsOf('image-build'), [jobBefore]);
  assert.deepEqual([...builder.images], [imageId]);
});

test('a manager that dies in the middle of an upload: the next follows the same job', async (t) => {
  const site = await ManagerSite.start(t, { providers: ['east'] });
  const builder = await site.builder();
  const hold = new Hold();
  builder.beforeUpload = ({ signal }) => hold.wait(signal);
  const first = site.manage();
  await hold.reached;
  await first.stop();
  const before = [...(await site.store.read()).uploads.values()].map(({ id, state }) => ({ id, state }));
  assert.deepEqual(before, [{ id: before[0]?.id, state: 'uploading' }]);
  site.manage();
  hold.release();
  const imageId = await site.untilInUse();
  assert.deepEqual(
    new Set(builder.jobsOf('image-upload').map(({ unique }) => unique)),
    new Set([before[0]?.id]),
  );
  assert.deepEqual(site.provider('east').imageIds, [imageId]);
});

test('an upload that ended while no manager ran is found by its unique key: the provider has one image', async (t) => {
  const site = await ManagerSite.start(t, { providers: ['east'] });
  const builder = await site.builder();
  const hold = new Hold();
  builder.beforeUpload = ({ signal }) => hold.wait(signal);
  const first = site.manage();
  await hold.reached;
  await first.stop();
  hold.release();
  await waitUntil('the end of the upload', () => builder.endedJobs === 2);
  site.manage();
  await site.untilInUse();
  const [upload] = (await site.store.read()).uploads.values();
  assert.deepEqual(
    [...site.provider('east').images.values()].map(({ uploadId }) => uploadId),
    [upload?.id],
  );
  assert.deepEqual(
    new Set(builder.jobsOf('image-upload').map(({ unique }) => unique)),
    new Set([upload?.id]),
  );
});

test('a manager that dies in the middle of deletions: the next ends them', async (t) => {
  const site = await ManagerSite.start(t, {
    providers: ['east'],
    diskimage: { keep: 1 },
    timing: { absenceLimit: 0.1 },
  });
  const builder = await site.builder();
  const first = site.manage();
  const old = await site.untilInUse();
  const [inProvider, onDisk] = [new Hold(), new Hold()];
  site.provider('east').beforeDelete = (signal) => inProvider.wait(signal);
  builder.beforeDelete = ({ signal }) => onDisk.wait(signal);
  first.manager.reconfigure(site.withDebian({ digest: 'second', keep: 1 }));
  await Promise.all([inProvider.reached, onDisk.reached]);
  await first.stop();
  const { builds, uploads } = await site.store.read();
  assert.equal(builds.get(old)?.state, 'deleting');
  assert.deepEqual(
    [...uploads.values()].filter(({ imageId }) => imageId === old).map(({ state }) => state),
    ['deleting'],
  );
  site.configuration = site.withDebian({ digest: 'second', keep: 1 });
  site.manage();
  inProvider.release();
  onDisk.release();
  const second = await site.untilInUse(old);
  assert.deepEqual(site.provider('east').imageIds, [second]);
  await waitUntil('the old one to go', () => !builder.images.has(old));
});

test('of two managers with one store one leads; when it stops, the other goes on at once', async (t) => {
  const site = await ManagerSite.start(t);
  const builder = await site.builder();
  const hold = new Hold();
  builder.beforeBuild = ({ signal }) => hold.wait(signal);
  const leader = site.manage();
  await hold.reached;
  site.manage();
  assert.equal(site.countLogged(/^info leading/), 1);
  await leader.stop();
  await waitUntil('the other to lead', () => site.countLogged(/^info leading/) === 2);
  hold.release();
  await site.untilInUse();
  assert.equal(builder.jobsOf('image-build').length, 1);
});
