import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Admin } from '@nodepool-builder/gearman-node';
import { startGearmand } from '../../../test/fixtures/gearmand.ts';
import { undoAfter } from '../../../test/fixtures/undo-after.ts';
import { waitUntil } from '../../../test/fixtures/wait-until.ts';
import { Hold } from './hold.ts';
import { ManagerSite } from './manager-site.ts';

test('an image’s life cycle continues after gearmand restarted with an empty queue during a build', async (t) => {
  const gearmand = await startGearmand();
  undoAfter(t, () => gearmand.stop());
  const site = await ManagerSite.start(t, { ports: [gearmand.port], diskimage: { keep: 1 } });
  const builder = await site.builder();
  const hold = new Hold();
  builder.beforeBuild = ({ signal }) => hold.wait(signal);
  const { manager } = site.manage();
  await hold.reached;
  await gearmand.restart();
  hold.release();
  const first = await site.untilInUse();
  assert.match(first, /^debian-0000000001-/);
  manager.reconfigure(site.withDebian({ digest: 'second', keep: 1 }));
  const second = await site.untilInUse(first);
  await site.untilGone(first);
  assert.deepEqual([...builder.images], [second]);
  for (const { imageIds } of site.providers.values()) assert.deepEqual(imageIds, [second]);
});

test('the next manager resumes the job when a manager dies during a build, with gearmand', async (t) => {
  const gearmand = await startGearmand();
  undoAfter(t, () => gearmand.stop());
  const site = await ManagerSite.start(t, { ports: [gearmand.port] });
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

test('the next manager finishes a deletion after builder and manager died, with gearmand', async (t) => {
  const gearmand = await startGearmand();
  undoAfter(t, () => gearmand.stop());
  const admin = new Admin({ host: '127.0.0.1', port: gearmand.port });
  undoAfter(t, () => admin.close());
  const timing = { absenceTimeout: 0.5 };
  const site = await ManagerSite.start(t, { ports: [gearmand.port], diskimage: { keep: 1 }, timing });
  const builder = await site.builder();
  const leader = site.manage();
  const old = await site.untilInUse();
  const hold = new Hold();
  builder.beforeDelete = async ({ signal }) => {
    builder.images.delete(old);
    await hold.wait(signal);
  };
  site.configuration = site.withDebian({ digest: 'second', keep: 1 });
  leader.manager.reconfigure(site.configuration);
  await hold.reached;
  await Promise.all([builder.die(), leader.stop()]);
  await builder.start();
  site.manage();
  const { builds } = await site.until(
    'the end of the deletion',
    (state) => state.builds.get(old)?.state !== 'deleting',
  );
  assert.notEqual(builds.get(old)?.state, 'ready');
  // gearmand may still list the job, but does not assign it.
  await waitUntil('no job that could start', async () =>
    (await admin.showJobs()).every(({ ignored }) => ignored),
  );
  assert.equal(builder.jobsOf('image-delete').length, 1);
});
