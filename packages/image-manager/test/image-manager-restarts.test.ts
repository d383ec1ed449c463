import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitUntil } from '../../../test/fixtures/wait-until.ts';
import { Hold } from './hold.ts';
import { ManagerSite } from './manager-site.ts';

test('the next manager resumes the build job when a manager dies during a build', async (t) => {
  const site = await ManagerSite.start(t);
  const builder = await site.builder();
  const hold = new Hold();
  builder.beforeBuild = ({ signal }) => hold.wait(signal);
  const first = site.manage();
  await hold.reached;
  await first.stop();
  const [{ unique } = assert.fail()] = builder.jobsOf('image-build');
  await site.untilWaiting(unique, 0);
  site.manage();
  await site.untilWaiting(unique, 1);
  hold.release();
  await site.untilInUse();
  assert.equal(builder.jobsOf('image-build').length, 1);
});

test('a build that ended while no manager ran is ready without another job', async (t) => {
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

test('the next manager resumes the upload job when a manager dies during an upload', async (t) => {
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

test('an upload that ended while no manager ran is not repeated', async (t) => {
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

test('the next manager finishes deletions when a manager dies during them', async (t) => {
  const site = await ManagerSite.start(t, {
    providers: ['east'],
    diskimage: { keep: 1 },
    timing: { absenceTimeout: 0.1 },
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
  await waitUntil('the old build to be deleted', () => !builder.images.has(old));
});

test('two managers with one store have one leader, and the other takes over at once when it stops', async (t) => {
  const site = await ManagerSite.start(t);
  const builder = await site.builder();
  const hold = new Hold();
  builder.beforeBuild = ({ signal }) => hold.wait(signal);
  const leader = site.manage();
  await hold.reached;
  site.manage();
  await site.logged(/^info another manager is the leader/);
  assert.equal(site.countLogged(/^info elected leader/), 1);
  const [{ unique } = assert.fail()] = builder.jobsOf('image-build');
  await leader.stop();
  await waitUntil('the other to be elected', () => site.countLogged(/^info elected leader/) === 2);
  await site.untilWaiting(unique, 1);
  hold.release();
  await site.untilInUse();
  assert.equal(builder.jobsOf('image-build').length, 1);
});
