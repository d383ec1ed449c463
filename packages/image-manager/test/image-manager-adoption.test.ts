import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { Admin } from '@nodepool-builder/gearman-node';
import { importedImageId } from '@nodepool-builder/image-builder/internal';
import { startGearmand } from '../../../test/fixtures/gearmand.ts';
import { undoAfter } from '../../../test/fixtures/undo-after.ts';
import { waitUntil } from '../../../test/fixtures/wait-until.ts';
import { Hold } from './hold.ts';
import { ManagerSite, type SiteOptions } from './manager-site.ts';
import type { SiteBuilder } from './site-builder.ts';

const DAY = 86_400_000;
const NEWEST = Date.UTC(2026, 1, 3);

/** Returns the image-id of a Zuul build that ended `days` days before the newest. */
function idOf(digit: string, days: number): string {
  return importedImageId({ image: 'debian', uuid: digit.repeat(32), endTime: NEWEST - days * DAY });
}

async function startSite(t: TestContext, options: SiteOptions = {}): Promise<ManagerSite> {
  return await ManagerSite.start(t, { providers: ['east'], diskimage: { isImported: true }, ...options });
}

/** Makes a builder import Zuul builds. */
function importBuilds(builder: SiteBuilder, ...ids: readonly string[]): void {
  for (const id of ids) builder.images.add(id);
  builder.offer();
}

test('imported Zuul builds are adopted, uploaded and kept by their age in Zuul, with gearmand', async (t) => {
  const gearmand = await startGearmand();
  undoAfter(t, () => gearmand.stop());
  const site = await startSite(t, { ports: [gearmand.port] });
  const builder = await site.builder();
  importBuilds(builder, idOf('b', 2));
  site.manage();
  assert.equal(await site.untilInUse(), idOf('b', 2));
  importBuilds(builder, idOf('a', 3));
  await site.logged(new RegExp(`build ${idOf('a', 3)}: Zuul built it`));
  importBuilds(builder, idOf('c', 0));
  assert.equal(await site.untilInUse(idOf('b', 2)), idOf('c', 0));
  // The build that ended first is deleted first, although it was imported later.
  await site.until('the oldest build to be deleted', ({ builds }) => builds.size === 2);
  assert.deepEqual([...builder.images], [idOf('b', 2), idOf('c', 0)]);
  assert.deepEqual(site.provider('east').imageIds, [idOf('b', 2), idOf('c', 0)]);
  importBuilds(builder, idOf('d', -1));
  assert.equal(await site.untilInUse(idOf('c', 0)), idOf('d', -1));
  await site.until('the third build to be deleted', ({ builds }) => !builds.has(idOf('b', 2)));
  assert.deepEqual([...builder.images], [idOf('c', 0), idOf('d', -1)]);
  assert.deepEqual(site.provider('east').imageIds, [idOf('c', 0), idOf('d', -1)]);
  assert.deepEqual(builder.jobsOf('image-build'), []);
});

test('the manager adopts many imported builds in one write', async (t) => {
  const site = await startSite(t, { providers: [], diskimage: { isImported: true, keep: 50 } });
  const ids = Array.from({ length: 50 }, (_, day) => idOf('a', day));
  importBuilds(await site.builder(), ...ids);
  const [port = 0] = site.ports;
  const admin = new Admin({ host: '127.0.0.1', port });
  undoAfter(t, () => admin.close());
  await waitUntil('the builder to offer all images', async () => {
    const offered = new Set((await admin.status()).map(({ name }) => name));
    return ids.every((id) => offered.has(`image-upload:${id}`));
  });
  const sizes = new Set<number>();
  site.manage();
  await site.until('all builds', ({ builds }) => {
    sizes.add(builds.size);
    return builds.size === ids.length;
  });
  assert.deepEqual(
    [...sizes].filter((size) => size !== 0),
    [50],
  );
});

test('an imported image that its builder is deleting is not adopted again', async (t) => {
  const site = await startSite(t);
  const builder = await site.builder();
  const hold = new Hold();
  builder.beforeDelete = ({ signal }) => hold.wait(signal);
  importBuilds(builder, idOf('a', 2), idOf('b', 1), idOf('c', 0));
  site.manage();
  await hold.reached;
  const { builds } = await site.store.read();
  assert.equal(builds.get(idOf('a', 2))?.state, 'deleting');
  hold.release();
  await site.until('its record to be deleted', (state) => !state.builds.has(idOf('a', 2)));
  await site.untilInUse();
  assert.equal(site.countLogged(new RegExp(`build ${idOf('a', 2)}: Zuul built it`)), 1);
});

test('an old image is deleted again when a builder comes back with it', async (t) => {
  const site = await startSite(t);
  const builder = await site.builder();
  importBuilds(builder, idOf('a', 2), idOf('b', 1), idOf('c', 0));
  site.manage();
  await site.until('the oldest build to be deleted', ({ builds }) => builds.size === 2);
  const other = await site.builder();
  importBuilds(other, idOf('a', 2));
  await waitUntil('its copy to be deleted', () => other.images.size === 0);
  assert.equal(await site.untilInUse(), idOf('c', 0));
  assert.deepEqual(site.provider('east').imageIds, [idOf('c', 0)]);
});

test('a withdrawn image is deleted as an orphan when a builder comes back with it', async (t) => {
  const site = await startSite(t, { timing: { orphanScanInterval: 0.05 } });
  const builder = await site.builder();
  importBuilds(builder, idOf('b', 1), idOf('c', 0));
  site.manage();
  await site.untilInUse();
  await site.store.ask({ kind: 'rollback', diskimage: 'debian' });
  assert.equal(await site.untilInUse(idOf('c', 0)), idOf('b', 1));
  importBuilds(builder, idOf('d', -1));
  await site.untilInUse(idOf('b', 1));
  await waitUntil('the withdrawn build to be deleted', () => !builder.images.has(idOf('c', 0)));
  const other = await site.builder();
  importBuilds(other, idOf('c', 0));
  await waitUntil('its copy to be deleted', () => other.images.size === 0);
  assert.deepEqual(site.provider('east').imageIds.toSorted(), [idOf('b', 1), idOf('d', -1)].toSorted());
});
