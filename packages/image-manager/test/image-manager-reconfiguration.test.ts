import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ManagerConfiguration } from '@nodepool-builder/image-manager';
import { waitUntil } from '../../../test/fixtures/wait-until.ts';
import { ManagerSite } from './manager-site.ts';

test('what an entry says of the build changes: it is built anew', async (t) => {
  const site = await ManagerSite.start(t);
  await site.builder();
  const { manager } = site.manage();
  const first = await site.untilInUse();
  manager.reconfigure(site.withDebian({ digest: 'second' }));
  const second = await site.untilInUse(first);
  const { builds } = await site.store.read();
  assert.equal(builds.get(second)?.configuration, 'second');
  assert.match(builds.get(second)?.reason ?? '', /configuration has changed/);
});

test('a disk image that is configured no more goes, in every provider and on disk', async (t) => {
  const site = await ManagerSite.start(t);
  const builder = await site.builder();
  const { manager } = site.manage();
  await site.untilInUse();
  manager.reconfigure(withoutImages(site.configuration, ['east', 'west'], []));
  await waitUntil('all to be gone', () => builder.images.size === 0);
  await waitUntil('all to be gone', () =>
    [...site.providers.values()].every(({ images }) => images.size === 0),
  );
});

test('an image that one provider needs no more goes from there, and stays elsewhere', async (t) => {
  const site = await ManagerSite.start(t);
  const builder = await site.builder();
  const { manager } = site.manage();
  const imageId = await site.untilInUse();
  manager.reconfigure(withoutImages(site.configuration, ['east'], site.configuration.diskimages));
  await waitUntil('it to be gone', () => site.provider('east').images.size === 0);
  await site.until('it to be on record', ({ uploads }) =>
    [...uploads.values()].every(({ state }) => state !== 'deleting'),
  );
  assert.deepEqual(site.provider('west').imageIds, [imageId]);
  assert.deepEqual([...builder.images], [imageId]);
});

test('a provider that is paused gets nothing; afterwards it gets the newest', async (t) => {
  const site = await ManagerSite.start(t);
  const builder = await site.builder();
  const { configuration } = site;
  const paused = configuration.providers.map((provider) => ({
    ...provider,
    pause: provider.name === 'east',
  }));
  site.configuration = { ...configuration, providers: paused };
  const { manager } = site.manage();
  await waitUntil('the upload to west', () => site.provider('west').images.size === 1);
  manager.reconfigure({ ...site.withDebian({ digest: 'second' }), providers: paused });
  await waitUntil('the second upload to west', () => site.provider('west').images.size === 2);
  assert.deepEqual(
    builder.jobsOf('image-upload').filter(({ payload }) => payload.includes('east')),
    [],
  );
  manager.reconfigure({ ...configuration, diskimages: site.withDebian({ digest: 'second' }).diskimages });
  const newest = await site.untilInUse();
  assert.deepEqual(site.provider('east').imageIds, [newest]);
});

test('a disk image that is paused is not built', async (t) => {
  const site = await ManagerSite.start(t, { diskimage: { pause: true } });
  const builder = await site.builder();
  const { manager } = site.manage();
  await site.logged(/^info leading/);
  // A request that is refused shows that a plan was made.
  await site.store.ask({ kind: 'rollback', diskimage: 'debian' });
  await site.logged(/^warn request/);
  assert.deepEqual(builder.jobs, []);
  manager.reconfigure(site.withDebian({ pause: false }));
  await site.untilInUse();
});

/** Providers that have no images any more, and other disk images. */
function withoutImages(
  configuration: ManagerConfiguration,
  providers: readonly string[],
  diskimages: ManagerConfiguration['diskimages'],
): ManagerConfiguration {
  return {
    ...configuration,
    diskimages,
    providers: configuration.providers.map((provider) =>
      providers.includes(provider.name) ? { ...provider, images: [] } : provider,
    ),
  };
}
