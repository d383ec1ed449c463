import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Hold } from './hold.ts';
import { ManagerSite } from './manager-site.ts';
import type { SiteProvider } from './site-provider.ts';

test('a new image is built and uploaded to every provider', async (t) => {
  const site = await ManagerSite.start(t);
  const builder = await site.builder();
  site.manage();
  const imageId = await site.untilInUse();
  assert.match(imageId, new RegExp(`^debian-0000000001-${site.store.owner}$`));
  assert.deepEqual(
    builder.jobsOf('image-build').map(({ payload, unique }) => ({ payload, unique })),
    [
      {
        payload: JSON.stringify({
          'image-id': imageId,
          checksum: true,
          attestations: true,
          packages: true,
          reason: true,
        }),
        unique: `0000000001-${site.store.owner}`,
      },
    ],
  );
  const { builds, uploads } = await site.store.read();
  assert.equal(builds.get(imageId)?.configuration, 'first');
  assert.deepEqual(
    [...uploads.values()].map(({ provider, state, externalId }) => ({ provider, state, externalId })),
    [...uploads.values()].map(({ provider, id }) => ({
      provider,
      state: 'ready',
      externalId: `${provider}/${id}`,
    })),
  );
  assert.deepEqual([...uploads.values()].map(({ provider }) => provider).toSorted(), ['east', 'west']);
});

test('a build or upload is on record before a builder gets its job', async (t) => {
  const site = await ManagerSite.start(t);
  const builder = await site.builder();
  const seen: string[] = [];
  builder.beforeBuild = async ({ payload }) => {
    const { 'image-id': id } = JSON.parse(String(payload));
    seen.push(`build ${(await site.store.read()).builds.get(id)?.state}`);
  };
  builder.beforeUpload = async ({ unique }) => {
    seen.push(`upload ${(await site.store.read()).uploads.get(unique)?.state}`);
  };
  site.manage();
  await site.untilInUse();
  assert.deepEqual(seen, ['build building', 'upload uploading', 'upload uploading']);
});

test('an upload that hangs does not delay uploads to other providers', async (t) => {
  const site = await ManagerSite.start(t);
  await site.builder();
  const hold = new Hold();
  site.provider('east').beforeUpload = (signal) => hold.wait(signal);
  site.manage();
  await hold.reached;
  const { uploads } = await site.until('the upload to west', (state) =>
    [...state.uploads.values()].some(({ provider, state: each }) => provider === 'west' && each === 'ready'),
  );
  assert.equal([...uploads.values()].find(({ provider }) => provider === 'east')?.state, 'uploading');
  hold.release();
  await site.untilInUse();
});

test('a failed upload is retried after a pause and discarded by its id', async (t) => {
  const site = await ManagerSite.start(t);
  const builder = await site.builder();
  const east = site.provider('east');
  const hold = new Hold();
  let failures = 0;
  east.afterUpload = () => {
    failures += 1;
    if (failures <= 2) throw new Error(`quota exceeded, ${failures}`);
  };
  east.beforeUpload = async (signal) => {
    if (failures === 2) await hold.wait(signal);
  };
  site.manage();
  await hold.reached;
  const { uploads } = await site.until('two discards', (state) =>
    [...state.uploads.values()].every(({ state: each, leftovers }) => each !== 'failed' || !leftovers),
  );
  const ofEast = [...uploads.values()].filter(({ provider }) => provider === 'east');
  assert.deepEqual(
    ofEast.map(({ state, error }) => ({ state, error })),
    [
      { state: 'failed', error: 'quota exceeded, 1' },
      { state: 'failed', error: 'quota exceeded, 2' },
      { state: 'uploading', error: undefined },
    ],
  );
  const [first, second, third] = ofEast.map(({ id, requestedAt, endedAt = 0 }) => ({
    id,
    requestedAt,
    endedAt,
  }));
  assert.ok(first && second && third);
  assert.deepEqual(east.discarded, [first.id, second.id]);
  assert.deepEqual(east.imageIds, []);
  // Each failure doubles the pause.
  assert.ok(second.requestedAt - first.endedAt >= 50, `${second.requestedAt - first.endedAt} ms`);
  assert.ok(third.requestedAt - second.endedAt >= 100, `${third.requestedAt - second.endedAt} ms`);
  hold.release();
  const imageId = await site.untilInUse();
  assert.deepEqual(east.imageIds, [imageId]);
  assert.equal(builder.jobsOf('image-build').length, 1);
  assert.equal(builder.jobsOf('image-upload').filter(({ payload }) => payload.includes('west')).length, 1);
});

test('a failed build is retried, and the builder’s reason is on record', async (t) => {
  const site = await ManagerSite.start(t);
  const builder = await site.builder();
  const hold = new Hold();
  builder.beforeBuild = () => {
    builder.beforeBuild = ({ signal }) => hold.wait(signal);
    throw new Error('no space left');
  };
  site.manage();
  await hold.reached;
  const { builds } = await site.store.read();
  assert.deepEqual(
    [...builds.values()].map(({ state, error }) => ({ state, error })),
    [
      { state: 'failed', error: 'no space left' },
      { state: 'building', error: undefined },
    ],
  );
  hold.release();
  assert.match(await site.untilInUse(), /^debian-0000000002-/);
});

test('two of three generations remain everywhere, and no provider is ever without an image', async (t) => {
  const site = await ManagerSite.start(t);
  const builder = await site.builder();
  const fewest = [...site.providers.values()].map((provider) => watchCount(provider));
  const { manager } = site.manage();
  const ids: string[] = [];
  for (const digest of ['first', 'second', 'third']) {
    manager.reconfigure(site.withDebian({ digest }));
    ids.push(await site.untilInUse(ids.at(-1)));
  }
  const [oldest = '', ...kept] = ids;
  // The last upload is on record shortly before the deletion of the oldest build starts.
  await site.untilGone(oldest);
  for (const { imageIds } of site.providers.values()) assert.deepEqual(imageIds, kept);
  assert.deepEqual([...builder.images], kept);
  assert.deepEqual(
    fewest.map((fewestIn) => fewestIn()),
    [1, 1],
  );
});

test('an image with keep 1 is deleted once its successor is ready', async (t) => {
  const site = await ManagerSite.start(t, { diskimage: { keep: 1 } });
  const builder = await site.builder();
  const fewest = [...site.providers.values()].map((provider) => watchCount(provider));
  const { manager } = site.manage();
  const first = await site.untilInUse();
  manager.reconfigure(site.withDebian({ keep: 1, digest: 'second' }));
  const second = await site.untilInUse(first);
  // The last upload is on record shortly before the deletion of the old build starts.
  await site.untilGone(first);
  for (const { imageIds } of site.providers.values()) assert.deepEqual(imageIds, [second]);
  assert.deepEqual([...builder.images], [second]);
  assert.deepEqual(
    fewest.map((fewestIn) => fewestIn()),
    [1, 1],
  );
});

test('a deletion that a provider rejects is retried and does not delay others', async (t) => {
  const site = await ManagerSite.start(t, { diskimage: { keep: 1 } });
  await site.builder();
  const { manager } = site.manage();
  const first = await site.untilInUse();
  let attempts = 0;
  site.provider('east').beforeDelete = () => {
    attempts += 1;
    if (attempts <= 2) throw new Error('it is in use');
  };
  manager.reconfigure(site.withDebian({ keep: 1, digest: 'second' }));
  const second = await site.untilInUse(first);
  // The last upload is on record shortly before the deletion of the old build starts.
  await site.untilGone(first);
  for (const { imageIds } of site.providers.values()) assert.deepEqual(imageIds, [second]);
  assert.equal(attempts, 3);
  assert.equal(site.countLogged(/^warn .*it is in use; retrying in 0\.05 s/), 1);
  assert.equal(site.countLogged(/^warn .*it is in use; retrying in 0\.1 s/), 1);
});

/** Records the min number of images in a provider since its first image. */
function watchCount(provider: SiteProvider): () => number {
  let fewest = Infinity;
  provider.onChange = () => {
    fewest = Math.min(fewest, provider.images.size);
  };
  return () => fewest;
}
