import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitUntil } from '../../../test/fixtures/wait-until.ts';
import { Hold } from './hold.ts';
import { ManagerSite } from './manager-site.ts';

test('another builder gets the build job when a builder dies during a build', async (t) => {
  const site = await ManagerSite.start(t);
  const dying = await site.builder();
  const hold = new Hold();
  dying.beforeBuild = ({ signal }) => hold.wait(signal);
  site.manage();
  await hold.reached;
  const other = await site.builder();
  await dying.die();
  const imageId = await site.untilInUse();
  assert.deepEqual([...other.images], [imageId]);
  assert.deepEqual(other.jobsOf('image-build'), dying.jobsOf('image-build'));
});

test('a builder that dies during an upload and comes back resumes the upload', async (t) => {
  const site = await ManagerSite.start(t, { providers: ['east'] });
  const builder = await site.builder();
  const hold = new Hold();
  builder.beforeUpload = ({ signal }) => hold.wait(signal);
  site.manage();
  await hold.reached;
  await builder.die();
  builder.beforeUpload = undefined;
  await builder.start();
  await site.untilInUse();
  const [first, second] = builder.jobsOf('image-upload');
  assert.deepEqual(second, first);
  assert.equal((await site.store.read()).uploads.size, 1);
});

test('an upload fails and its image is built again when a builder disappears with the only copy', async (t) => {
  const site = await ManagerSite.start(t, {
    providers: ['east'],
    diskimage: { keep: 1 },
    timing: { absenceTimeout: 0.2, orphanScanInterval: 0.05 },
  });
  const vanishing = await site.builder();
  const hold = new Hold();
  vanishing.beforeUpload = ({ signal }) => hold.wait(signal);
  site.manage();
  await hold.reached;
  const [lost = ''] = vanishing.images;
  const replacement = await site.builder();
  const vanishedAt = Date.now();
  await vanishing.die();
  const imageId = await site.untilInUse(lost);
  assert.deepEqual([...replacement.images], [imageId]);
  assert.equal(site.countLogged(/^warn upload .* failed: no builder has offered image .* for 0\.2 s/), 1);
  const { builds } = await site.store.read();
  const second = builds.get(imageId);
  assert.ok((second?.requestedAt ?? 0) >= vanishedAt + 200, 'the manager waited for absence-timeout');
  await site.until('the lost build to be deleted', (state) => {
    const found = state.builds.get(lost);
    return found === undefined || found.state === 'deleted';
  });
  assert.deepEqual(vanishing.jobsOf('image-delete'), []);

  // The builder returns with an orphan.
  vanishing.beforeUpload = undefined;
  await vanishing.start();
  await waitUntil('the orphan to be deleted', () => !vanishing.images.has(lost));
  assert.equal(vanishing.jobsOf('image-delete').length, 1);
  assert.deepEqual([...replacement.images], [imageId]);
});

test('a builder that is away for less than absence-timeout causes no build', async (t) => {
  const site = await ManagerSite.start(t, { providers: ['east'] });
  const builder = await site.builder();
  const hold = new Hold();
  builder.beforeUpload = ({ signal }) => hold.wait(signal);
  site.manage();
  await hold.reached;
  const [imageId] = builder.images;
  await builder.die();
  const other = await site.builder();
  builder.beforeUpload = undefined;
  await builder.start();
  assert.equal(await site.untilInUse(), imageId);
  assert.deepEqual(other.jobs, []);
});
