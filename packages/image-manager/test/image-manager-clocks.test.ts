import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManagerSite } from './manager-site.ts';

const DAY = 86_400_000;
const MONTH = 30 * DAY;

test('rebuilds continue after the clock was ahead and has been set right', async (t) => {
  const site = await ManagerSite.start(t, { diskimage: { rebuildAge: 86_400 } });
  const builder = await site.builder();
  site.ahead = MONTH;
  site.manage();
  const first = await site.untilInUse();
  site.ahead = 0;
  site.elapsed += 60_000; // the max pause between two plans
  await site.logged(/^warn the records of .* have dates in the future and count as made now/);
  assert.equal(builder.jobsOf('image-build').length, 1);
  site.ahead = DAY;
  site.elapsed += DAY;
  await site.untilInUse(first);
  assert.equal(builder.jobsOf('image-build').length, 2);
});

test('a requested build is used even if an earlier build has a date in the future', async (t) => {
  const site = await ManagerSite.start(t, { diskimage: { keep: 1 } });
  const builder = await site.builder();
  site.ahead = MONTH;
  const before = site.manage();
  const first = await site.untilInUse();
  await before.stop();
  site.ahead = 0;
  await site.store.ask({ kind: 'build', diskimage: 'debian' });
  site.manage();
  const second = await site.untilInUse(first);
  await site.untilGone(first);
  assert.equal((await site.store.read()).builds.get(second)?.state, 'ready');
  assert.deepEqual([...builder.images.keys()], [second]);
});

test('a clock that is set back while a manager runs delays neither plans nor retries', async (t) => {
  const timing = { retryDelay: 60, maxRetryDelay: 60 };
  const site = await ManagerSite.start(t, { providers: ['east'], timing });
  const builder = await site.builder();
  site.provider('east').beforeUpload = async () => {
    if (builder.jobsOf('image-upload').length === 1) throw new Error('broken');
  };
  site.manage();
  await site.until('the failure', ({ uploads }) =>
    [...uploads.values()].some(({ state }) => state === 'failed'),
  );
  site.ahead = -MONTH;
  site.elapsed += 60_000;
  await site.logged(/^warn the records of .* have dates in the future and count as made now/);
  site.ahead += 60_000;
  site.elapsed += 60_000;
  const first = await site.untilInUse();
  await site.store.ask({ kind: 'build', diskimage: 'debian' });
  await site.untilInUse(first);
});

test('a clock that jumps ahead does not extend an absence', async (t) => {
  const site = await ManagerSite.start(t, { diskimage: { keep: 1 }, timing: { absenceTimeout: 3600 } });
  const builder = await site.builder();
  site.manage();
  const first = await site.untilInUse();
  await builder.die();
  await site.store.ask({ kind: 'delete-build', imageId: first });
  await site.until('the deletion to begin', ({ builds }) => builds.get(first)?.state === 'deleting');
  site.ahead = MONTH;
  await site.logged(/a builder that is away may still have its files/);
  assert.equal((await site.store.read()).builds.get(first)?.state, 'deleting');
  site.elapsed += 3_600_000;
  await site.until('the deletion', ({ builds }) => builds.get(first)?.state !== 'deleting');
});
