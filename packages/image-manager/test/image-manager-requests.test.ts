import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Client, Worker } from '@nodepool-builder/gearman-node';
import { undoAfter } from '../../../test/fixtures/undo-after.ts';
import { waitUntil } from '../../../test/fixtures/wait-until.ts';
import { buildKeyOf } from '../src/ownership.ts';
import { Hold } from './hold.ts';
import { ManagerSite } from './manager-site.ts';

test('a disk image that an operator paused is not built, even on request, until it is unpaused', async (t) => {
  const site = await ManagerSite.start(t);
  const builder = await site.builder();
  const { manager } = site.manage();
  const first = await site.untilInUse();
  const paused: unknown[] = [];
  builder.beforeBuild = async () => void paused.push(...(await site.store.read()).pauses.keys());
  await site.store.ask({ kind: 'pause', diskimage: 'debian', by: 'root@host' });
  await site.until('the pause', ({ pauses }) => pauses.get('debian')?.isPaused === true);
  const [pause] = (await site.store.read()).pauses.values();
  assert.partialDeepStrictEqual(pause, { id: 'debian', isPaused: true, by: 'root@host' });
  // A second pause has no effect; once it is handled, the manager has planned.
  manager.reconfigure(site.withDebian({ digest: 'second' }));
  await site.store.ask({ kind: 'build', diskimage: 'debian' });
  const number = await site.store.ask({ kind: 'pause', diskimage: 'debian', by: 'somebody else' });
  await waitUntil('the second pause to be handled', async () =>
    (await site.store.requests()).every((pending) => pending.number !== number),
  );
  assert.deepEqual([...(await site.store.read()).pauses.values()], [pause]);
  await site.store.ask({ kind: 'unpause', diskimage: 'debian', by: 'alice' });
  await site.untilInUse(first);
  assert.deepEqual(paused, [], 'no build began while it was paused');
  assert.equal(builder.jobsOf('image-build').length, 2);
  assert.deepEqual(await site.store.requests(), []);
  assert.equal((await site.store.read()).pauses.size, 0);
});

test('a disk image that an operator unpaused is built as long as the configuration pauses it', async (t) => {
  const site = await ManagerSite.start(t, { diskimage: { pause: true } });
  await site.builder();
  const { manager } = site.manage();
  await site.store.ask({ kind: 'unpause', diskimage: 'debian', by: 'alice' });
  await site.untilInUse();
  const { pauses } = await site.store.read();
  assert.partialDeepStrictEqual(pauses.get('debian'), { isPaused: false, by: 'alice' });
  manager.reconfigure(site.withDebian({ pause: false }));
  await site.until('the end of the record', (state) => state.pauses.size === 0);
});

test('a disk image that is not configured cannot be paused', async (t) => {
  const site = await ManagerSite.start(t);
  site.manage();
  await site.store.ask({ kind: 'pause', diskimage: 'other', by: 'root@host' });
  await site.logged(/request 1, pause: disk image "other" is not configured; nothing is paused/);
  assert.equal((await site.store.read()).pauses.size, 0);
});

test('a build requested during a build follows it, and two such requests share one build', async (t) => {
  const site = await ManagerSite.start(t);
  const builder = await site.builder();
  const hold = new Hold();
  builder.beforeBuild = ({ signal }) => hold.wait(signal);
  site.manage();
  await hold.reached;
  await site.store.ask({ kind: 'build', diskimage: 'debian' });
  await site.store.ask({ kind: 'build', diskimage: 'debian' });
  hold.release();
  await waitUntil('the requests to be handled', async () => (await site.store.requests()).length === 0);
  assert.match(await site.untilInUse(), /^debian-000000000[1-9]-/);
  const { builds } = await site.store.read();
  assert.equal(builds.size, 2);
  assert.equal(builder.jobsOf('image-build').length, 2);
});

test('a request made while no manager runs is handled once, by the next manager', async (t) => {
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
  const [, { unique } = assert.fail()] = builder.jobsOf('image-build');
  await site.untilWaiting(unique, 0);
  site.manage();
  await site.untilWaiting(unique, 1);
  hold.release();
  await site.untilInUse(old);
  assert.equal(builder.jobsOf('image-build').length, 2);
});

test('a rollback replaces the newest build with the previous one, without a new build', async (t) => {
  const site = await ManagerSite.start(t);
  const builder = await site.builder();
  const { manager } = site.manage();
  const first = await site.untilInUse();
  manager.reconfigure(site.withDebian({ digest: 'second' }));
  const second = await site.untilInUse(first);
  // The provider that lacks the previous build gets it before the newest is deleted.
  const [old] = [...(await site.store.read()).uploads.values()].filter(
    ({ provider, imageId }) => provider === 'east' && imageId === first,
  );
  await site.store.ask({ kind: 'delete-upload', uploadId: old?.id ?? '' });
  await waitUntil('the upload to be deleted', () => !site.provider('east').imageIds.includes(first));
  await site.store.ask({ kind: 'rollback', diskimage: 'debian' });
  assert.equal(await site.untilInUse(second), first);
  await site.untilGone(second);
  assert.deepEqual([...builder.images], [first]);
  for (const { imageIds } of site.providers.values()) assert.deepEqual(imageIds, [first]);
  assert.equal(builder.jobsOf('image-build').length, 2);
});

test('a requested deletion removes a build everywhere, and the previous build replaces it', async (t) => {
  const site = await ManagerSite.start(t);
  const builder = await site.builder();
  const { manager } = site.manage();
  const first = await site.untilInUse();
  manager.reconfigure(site.withDebian({ digest: 'second' }));
  const second = await site.untilInUse(first);
  await site.store.ask({ kind: 'delete-build', imageId: second });
  await waitUntil('the build to be deleted', () => !builder.images.has(second));
  assert.equal(await site.untilInUse(second), first);
  for (const { imageIds } of site.providers.values()) assert.deepEqual(imageIds, [first]);
});

test('a requested deletion removes even the last upload, and the image is uploaded again', async (t) => {
  const site = await ManagerSite.start(t, { providers: ['east'] });
  await site.builder();
  site.manage();
  const imageId = await site.untilInUse();
  const [old] = (await site.store.read()).uploads.values();
  await site.store.ask({ kind: 'delete-upload', uploadId: old?.id ?? '' });
  await waitUntil(
    'another upload',
    () => ![...site.provider('east').images.values()].some(({ uploadId }) => uploadId === old?.id),
  );
  assert.equal(await site.untilInUse(), imageId);
});

test('a requested build that waits for a builder is cancelled by its disk image’s name', async (t) => {
  const site = await ManagerSite.start(t);
  site.manage();
  await site.store.ask({ kind: 'build', diskimage: 'debian' });
  await site.store.ask({ kind: 'cancel', id: 'debian', by: 'me@here' });
  await waitUntil('both requests to be handled', async () => (await site.store.requests()).length === 0);
  assert.equal((await site.store.read()).builds.size, 0);
});

test('a cancelled build that waits for a builder never runs, and its record says who cancelled it', async (t) => {
  const site = await ManagerSite.start(t);
  const servers = site.ports.map((port) => ({ host: '127.0.0.1', port }));
  const client = new Client({ servers });
  undoAfter(t, () => client.close());
  const worker = new Worker({ servers });
  undoAfter(t, () => worker.close({ signal: AbortSignal.abort() }));
  const hold = new Hold();
  const handled: string[] = [];
  worker.setFunctions({
    'image-build:debian': async ({ payload, signal }) => {
      handled.push(payload.toString());
      await hold.wait(signal);
    },
  });
  void client.submit('image-build:debian', 'another');
  await hold.reached;
  site.manage();
  const build = await waitUntil('the build', async () => [...(await site.store.read()).builds.values()][0]);
  await waitUntil('its job', async () => (await client.statusByUnique(buildKeyOf(build.id))).known);
  await site.store.ask({ kind: 'cancel', id: build.id, by: 'me@here' });
  await site.until('the end on record', ({ builds }) => builds.get(build.id)?.state === 'failed');
  const { builds } = await site.store.read();
  assert.partialDeepStrictEqual(builds.get(build.id), {
    error: 'cancelled by me@here',
    cancelledBy: 'me@here',
  });
  hold.release();
  await waitUntil(
    'the queue to be empty',
    async () => !(await client.statusByUnique(buildKeyOf(build.id))).known,
  );
  await client.submit('image-build:debian', 'last').result;
  assert.deepEqual(handled, ['another', 'last']);
});

test('invalid requests are rejected with a warning and do not delay others', async (t) => {
  const site = await ManagerSite.start(t);
  const builder = await site.builder();
  for (const invalid of [
    { kind: 'cancel', id: 'no-such', by: 'me@here' },
    { kind: 'build', diskimage: 'no-such' },
    { kind: 'delete-build', imageId: 'no-such' },
    { kind: 'delete-upload', uploadId: 'no-such' },
    { kind: 'rollback', diskimage: 'no-such' },
    { kind: 'from-the-future', diskimage: ['debian', 'ubuntu'] },
    { kind: 'build', diskimage: 7 },
    'text',
  ]) {
    await site.store.ask(invalid as never);
  }
  const last = await site.store.ask({ kind: 'build', diskimage: 'debian' });
  site.manage();
  await site.untilInUse();
  assert.deepEqual(await site.store.requests(), []);
  for (const [number, reason] of [
    [last - 8, 'cancel: nothing to cancel: no-such neither waits nor runs'],
    [last - 7, 'build: disk image "no-such" is not configured'],
    [last - 6, 'delete-build: no image no-such to delete'],
    [last - 5, 'delete-upload: no upload no-such to delete'],
    [last - 4, 'rollback: .*no-such'],
    [last - 3, 'invalid: this release does not support it; update the manager'],
    [last - 2, 'invalid: diskimage is not a string; make the request again'],
    [last - 1, 'invalid: it is not an object; make the request again'],
  ] as const) {
    assert.equal(site.countLogged(new RegExp(`^warn request ${number}, ${reason}`)), 1, reason);
  }
  assert.equal(builder.jobsOf('image-build').length, 1);
});
