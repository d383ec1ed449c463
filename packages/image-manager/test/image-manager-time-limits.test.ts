import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitUntil } from '../../../test/fixtures/wait-until.ts';
import { Hold } from './hold.ts';
import { ManagerSite } from './manager-site.ts';

test('a build that exceeds its time limit fails, and its late image becomes an orphan', async (t) => {
  const site = await ManagerSite.start(t, {
    diskimage: { buildTimeout: 0.1 },
    timing: { orphanScanInterval: 0.03 },
  });
  const builder = await site.builder();
  const hold = new Hold();
  builder.beforeBuild = ({ signal }) => {
    builder.beforeBuild = undefined;
    return hold.wait(signal);
  };
  site.manage();
  await site.logged(
    /^warn build debian-0000000001-\w+ failed: the job image-build:debian took longer than 0\.1 s/,
  );
  const imageId = await site.untilInUse();
  hold.release();
  await site.logged(/^warn orphan: image debian-0000000001-\w+ at a builder has no record/);
  await waitUntil('the orphan to be deleted', () => builder.images.size === 1);
  assert.deepEqual([...builder.images], [imageId]);
});

test('an upload that exceeds its time limit fails, is discarded and is retried', async (t) => {
  const site = await ManagerSite.start(t, { providers: ['east'], timing: { orphanScanInterval: 0.03 } });
  const { configuration } = site;
  const providers = configuration.providers.map((each) => ({ ...each, uploadTimeout: 0.1 }));
  site.configuration = { ...configuration, providers };
  await site.builder();
  const east = site.provider('east');
  const hold = new Hold();
  east.afterUpload = (signal) => {
    east.afterUpload = undefined;
    return hold.wait(signal);
  };
  site.manage();
  const failure = /^warn upload .* failed: the job image-upload:\S+ took longer than 0\.1 s/;
  await site.logged(failure);
  const imageId = await site.untilInUse();
  // On a busy host, the retry may also exceed its time limit, and its image may arrive after it was discarded.
  await waitUntil(
    'each failed upload to be discarded',
    () => new Set(east.discarded).size === site.countLogged(failure) && east.imageIds.length === 1,
  );
  assert.deepEqual(east.imageIds, [imageId]);
  hold.release();
});
