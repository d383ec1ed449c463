import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ManagerConfiguration } from '@nodepool-builder/image-manager';
import { waitUntil } from '../../../test/fixtures/wait-until.ts';
import { ManagerSite } from './manager-site.ts';

test('a changed configuration of a disk image causes a build', async (t) => {
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

test('a requested build waits for the configuration that is being loaded, and runs once', async (t) => {
  const site = await ManagerSite.start(t);
  const builder = await site.builder();
  const { manager } = site.manage();
  const first = await site.untilInUse();
  site.isReloading = true;
  await site.store.ask({ kind: 'build', diskimage: 'debian' });
  manager.reconfigure(site.withDebian({ digest: 'second' }));
  site.isReloading = false;
  const second = await site.untilInUse(first);
  const { builds } = await site.store.read();
  assert.equal(builds.get(second)?.configuration, 'second');
  assert.equal(builds.get(second)?.reason, 'it was requested');
  assert.equal(builder.jobsOf('image-build').length, 2);
});

test('a disk image that leaves the configuration is deleted in every provider and on disk', async (t) => {
  const site = await ManagerSite.start(t);
  const builder = await site.builder();
  const { manager } = site.manage();
  await site.untilInUse();
  manager.reconfigure(withoutImages(site.configuration, ['east', 'west'], []));
  await waitUntil('the build to be deleted', () => builder.images.size === 0);
  await waitUntil('all uploads to be deleted', () =>
    [...site.providers.values()].every(({ images }) => images.size === 0),
  );
});

test('an image that leaves a provider’s configuration is deleted only there', async (t) => {
  const site = await ManagerSite.start(t);
  const builder = await site.builder();
  const { manager } = site.manage();
  const imageId = await site.untilInUse();
  manager.reconfigure(withoutImages(site.configuration, ['east'], site.configuration.diskimages));
  await waitUntil('the image to be deleted', () => site.provider('east').images.size === 0);
  await site.until('the deletion to be on record', ({ uploads }) =>
    [...uploads.values()].every(({ state }) => state !== 'deleting'),
  );
  assert.deepEqual(site.provider('west').imageIds, [imageId]);
  assert.deepEqual([...builder.images], [imageId]);
});

test('a paused provider gets no image until it is resumed, and then the newest one', async (t) => {
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

test('a disk image that the configuration pauses is not built', async (t) => {
  const site = await ManagerSite.start(t, { diskimage: { pause: true } });
  const builder = await site.builder();
  const { manager } = site.manage();
  await site.logged(/^info elected leader/);
  // A rejected request shows that a planning pass has ended.
  await site.store.ask({ kind: 'rollback', diskimage: 'debian' });
  await site.logged(/^warn request/);
  assert.deepEqual(builder.jobs, []);
  manager.reconfigure(site.withDebian({ pause: false }));
  await site.untilInUse();
});

/** Removes the images of some providers, and replaces the disk images. */
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
