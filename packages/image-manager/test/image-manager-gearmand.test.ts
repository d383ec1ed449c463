import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startGearmand } from '../../../test/fixtures/gearmand.ts';
import { undoAfter } from '../../../test/fixtures/undo-after.ts';
import { Hold } from './hold.ts';
import { ManagerSite } from './manager-site.ts';

test('gearmand that is killed in the middle of a build comes back empty: the life cycle goes on', async (t) => {
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
  assert.deepEqual([...builder.images], [second]);
  for (const { imageIds } of site.providers.values()) assert.deepEqual(imageIds, [second]);
});

test('gearmand: a manager that dies in the middle of a build: the next follows the same job', async (t) => {
  const gearmand = await startGearmand();
  undoAfter(t, () => gearmand.stop());
  const site = await ManagerSite.start(t, { ports: [gearmand.port] });
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
