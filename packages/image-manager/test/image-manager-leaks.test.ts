import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitUntil } from '../../../test/fixtures/wait-until.ts';
import { ManagerSite } from './manager-site.ts';

/** Looks come often. */
const timing = { leakInterval: 0.03 };

test('an image with our mark and without a record goes; one of others, or without a mark, stays', async (t) => {
  const site = await ManagerSite.start(t, { providers: ['east'], timing });
  const builder = await site.builder();
  const east = site.provider('east');
  const { owner } = site.store;
  east.plant({ externalId: 'leak', uploadId: `0000000099-${owner}` });
  east.plant({ externalId: 'of another owner', uploadId: '0000000099-aaaaaaaa' });
  east.plant({ externalId: 'of a foreign tool', uploadId: 'upload-7' });
  east.plant({ externalId: 'without a mark' });
  builder.images.add(`debian-0000000098-${owner}`).add('debian-1').add('debian-0000000098-aaaaaaaa');
  builder.offer();
  site.manage();
  await waitUntil('the leaks to go', () => !east.images.has('leak') && builder.images.size === 3);
  const imageId = await site.untilInUse();
  const seen = east.listings;
  await waitUntil('two more looks', () => east.listings >= seen + 2);
  assert.deepEqual(
    [...east.images.keys()].filter((id) => !id.startsWith('east/')),
    ['of another owner', 'of a foreign tool', 'without a mark'],
  );
  assert.deepEqual([...builder.images], ['debian-1', 'debian-0000000098-aaaaaaaa', imageId]);
  assert.equal(site.countLogged(/^warn leak: /), 2);
});

test('an image that somebody removed from the provider is uploaded anew', async (t) => {
  const site = await ManagerSite.start(t, { providers: ['east'], timing });
  const builder = await site.builder();
  const east = site.provider('east');
  site.manage();
  const imageId = await site.untilInUse();
  await site.until('it to be seen', ({ uploads }) => [...uploads.values()].every(({ seen }) => seen));
  const [lost = ''] = east.images.keys();
  east.images.delete(lost);
  await waitUntil('another', () => east.images.size === 1);
  assert.equal(await site.untilInUse(), imageId);
  assert.ok(!east.images.has(lost));
  assert.equal(site.countLogged(/^warn upload .* is gone from east/), 1);
  assert.equal(builder.jobsOf('image-build').length, 1);
});

test('a provider that never shows our uploads gets one warning, and nothing else happens', async (t) => {
  const site = await ManagerSite.start(t, { providers: ['east'], timing });
  const builder = await site.builder();
  const east = site.provider('east');
  let looks = 0;
  east.list = async () => {
    looks += 1;
    return [];
  };
  site.manage();
  await site.untilInUse();
  await site.logged(/^warn provider east does not list upload/);
  const seen = looks;
  await waitUntil('more looks', () => looks >= seen + 4);
  assert.equal(site.countLogged(/^warn /), 1);
  assert.equal(builder.jobsOf('image-upload').length, 1);
  assert.equal(east.images.size, 1);
});

test('a provider that cannot be listed is warned of; leaks elsewhere go all the same', async (t) => {
  const site = await ManagerSite.start(t, { timing });
  await site.builder();
  site.provider('west').beforeList = () => {
    throw new Error('401');
  };
  site.provider('east').plant({ externalId: 'leak', uploadId: `0000000099-${site.store.owner}` });
  site.manage();
  await waitUntil('the leak to go', () => !site.provider('east').images.has('leak'));
  await site.logged(/^warn provider west cannot be listed: 401/);
  await site.untilInUse();
});
