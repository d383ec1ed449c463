import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitUntil } from '../../../test/fixtures/wait-until.ts';
import { Hold } from './hold.ts';
import { ManagerSite } from './manager-site.ts';

test('a rebuild that is asked for is made once, even while the disk image is paused', async (t) => {
  const site = await ManagerSite.start(t);
  const builder = await site.builder();
  const { manager } = site.manage();
  const first = await site.untilInUse();
  manager.reconfigure(site.withDebian({ pause: true }));
  await site.store.ask({ kind: 'build', diskimage: 'debian' });
  await site.until('the second build', ({ builds }) =>
    [...builds.values()].some(({ id, state }) => id !== first && state === 'ready'),
  );
  // A manager that takes the request for a new one would begin a third build before it uploads the second.
  manager.reconfigure(site.withDebian({ pause: false }));
  await site.untilInUse(first);
  assert.equal(builder.jobsOf('image-build').length, 2);
  assert.deepEqual(await site.store.requests(), []);
});

test('a rebuild that is asked for while one is built follows it; two that wait are one', async (t) => {
  const site = await ManagerSite.start(t);
  const builder = await site.builder();
  const hold = new Hold();
  builder.beforeBuild = ({ signal }) => hold.wait(signal);
  site.manage();
  await hold.reached;
  await site.store.ask({ kind: 'build', diskimage: 'debian' });
  await site.store.ask({ kind: 'build', diskimage: 'debian' });
  hold.release();
  await waitUntil('the requests to be answered', async () => (await site.store.requests()).length === 0);
  assert.match(await site.untilInUse(), /^debian-000000000[1-9]-/);
  const { builds } = await site.store.read();
  assert.equal(builds.size, 2);
  assert.equal(builder.jobsOf('image-build').length, 2);
});

test('what is asked while no manager runs is answered later, and once, though that manager dies', async (t) => {
  const site = await ManagerSite.start(t);
  const builder = await site.builder();
  const first = site.manage();
  const old = await site.untilInUse();
  await first.stop();
  await site.store.ask({ kind: 'build', diskimage: 'debian' });
  const hold = new Hold();
  builder.beforeBuild = ({ signal }) => hold.wait(signal);
  const second = site.manage();
  await hold.reached;
  assert.deepEqual(await site.store.requests(), []);
  await second.stop();
  site.manage();
  hold.release();
  await site.untilInUse(old);
  assert.equal(builder.jobsOf('image-build').length, 2);
});

test('rollback: the build before stands in for the newest, which goes, and nothing is built for it', async (t) => {
  const site = await ManagerSite.start(t);
  const builder = await site.builder();
  const { manager } = site.manage();
  const first = await site.untilInUse();
  manager.reconfigure(site.withDebian({ digest: 'second' }));
  const second = await site.untilInUse(first);
  // Missing here, it is uploaded again before the newest goes.
  const [old] = [...(await site.store.read()).uploads.values()].filter(
    ({ provider, imageId }) => provider === 'east' && imageId === first,
  );
  await site.store.ask({ kind: 'delete-upload', uploadId: old?.id ?? '' });
  await waitUntil('its deletion', () => !site.provider('east').imageIds.includes(first));
  await site.store.ask({ kind: 'rollback', diskimage: 'debian' });
  assert.equal(await site.untilInUse(second), first);
  await waitUntil('the newest to go', () => !builder.images.has(second));
  await site.until('the end of it', ({ builds }) => builds.get(second)?.state !== 'deleting');
  for (const { imageIds } of site.providers.values()) assert.deepEqual(imageIds, [first]);
  assert.equal(builder.jobsOf('image-build').length, 2);
});

test('a build that is to be deleted goes everywhere, and one before takes its place', async (t) => {
  const site = await ManagerSite.start(t);
  const builder = await site.builder();
  const { manager } = site.manage();
  const first = await site.untilInUse();
  manager.reconfigure(site.withDebian({ digest: 'second' }));
  const second = await site.untilInUse(first);
  await site.store.ask({ kind: 'delete-build', imageId: second });
  await waitUntil('it to go', () => !builder.images.has(second));
  assert.equal(await site.untilInUse(second), first);
  for (const { imageIds } of site.providers.values()) assert.deepEqual(imageIds, [first]);
});

test('an upload that is to be deleted goes, even the last one, and is made anew', async (t) => {
  const site = await ManagerSite.start(t, { providers: ['east'] });
  await site.builder();
  site.manage();
  const imageId = await site.untilInUse();
  const [old] = (await site.store.read()).uploads.values();
  await site.store.ask({ kind: 'delete-upload', uploadId: old?.id ?? '' });
  await waitUntil(
    'another one',
    () => ![...site.provider('east').images.values()].some(({ uploadId }) => uploadId === old?.id),
  );
  assert.equal(await site.untilInUse(), imageId);
});

test('what makes no sense is dropped with a warning, and holds up nothing behind it', async (t) => {
  const site = await ManagerSite.start(t);
  const builder = await site.builder();
  for (const nonsense of [
    { kind: 'build', diskimage: 'no-such' },
    { kind: 'delete-build', imageId: 'no-such' },
    { kind: 'delete-upload', uploadId: 'no-such' },
    { kind: 'rollback', diskimage: 'no-such' },
    { kind: 'from-the-future' },
  ]) {
    await site.store.ask(nonsense as never);
  }
  const last = await site.store.ask({ kind: 'build', diskimage: 'debian' });
  site.manage();
  await site.untilInUse();
  assert.deepEqual(await site.store.requests(), []);
  for (const [number, reason] of [
    [last - 5, 'build: disk image "no-such" is not configured'],
    [last - 4, 'delete-build: there is no image no-such'],
    [last - 3, 'delete-upload: there is no upload no-such'],
    [last - 2, 'rollback: .*no-such'],
    [last - 1, 'from-the-future: this release knows no such request'],
  ] as const) {
    assert.equal(site.countLogged(new RegExp(`^warn request ${number}, ${reason}`)), 1, reason);
  }
  assert.equal(builder.jobsOf('image-build').length, 1);
});
