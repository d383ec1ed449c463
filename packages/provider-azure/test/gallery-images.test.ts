// Only in test:all: it has further variants of an upload.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { latestImage } from '@nodepool-builder/image-builder';
import { CloudError } from '@nodepool-builder/image-builder/plugin';
import { openProvider, startDouble } from './azure-fixture.ts';
import { diskRequest } from './disk.ts';

const GALLERY = { 'gallery-name': 'ci' };

test('an Azure image definition has a name that Azure accepts, and the provider’s tags', async (t) => {
  const double = await startDouble(t);
  double.addGallery('ci');
  const provider = openProvider(double, { ...GALLERY, tags: { team: 'ci' } });
  for (const [index, imageName] of ['_debian/12.', '---'].entries()) {
    await provider.upload(await diskRequest(t, [0], undefined, { uploadId: `u${index}`, imageName }));
  }
  const definitions = double.cloud.resources
    .all()
    .filter(({ type }) => type === 'Microsoft.Compute/galleries/images');
  assert.deepEqual(
    definitions.map(({ name, tags }) => [name, tags]),
    [
      ['debian-12', { team: 'ci' }],
      ['image', { team: 'ci' }],
    ],
  );
});

test('an Azure image version excluded from the latest, or past its end of life, is not chosen', async (t) => {
  const double = await startDouble(t);
  double.addGallery('ci');
  const provider = openProvider(double, GALLERY);
  const upload = async (uploadId: string, day: number): Promise<string> => {
    const builtAt = new Date(Date.UTC(2026, 4, day));
    return (await provider.upload(await diskRequest(t, [0], undefined, { uploadId, builtAt }))).externalId;
  };
  const oldest = await upload('u1', 1);
  for (const [id, member] of [
    [await upload('u2', 2), { endOfLifeDate: '2026-06-01T00:00:00Z' }],
    [await upload('u3', 3), { excludeFromLatest: true }],
  ] as const) {
    const { properties } = double.cloud.resources.get(id);
    properties.publishingProfile = { ...(properties.publishingProfile as object), ...member };
  }
  const { latest, refused } = latestImage(await provider.findImages({}), {});
  assert.equal(latest?.externalId, oldest);
  assert.deepEqual(
    refused.map(({ reason }) => reason),
    ['it is retired', 'it is retired'],
  );
  assert.equal((await provider.list()).length, 3);
});

test('a missing Azure gallery causes an error before anything is created', async (t) => {
  const double = await startDouble(t);
  const request = await diskRequest(t, [0]);
  await assert.rejects(openProvider(double, GALLERY).upload(request), (error) => {
    assert.ok(error instanceof CloudError);
    assert.match(error.message, /galleries\/ci.* was not found/);
    return error.code === 'not-found';
  });
  assert.deepEqual(
    double.requests.filter(({ name }) => /^PUT (?!definitions)/.test(name)),
    [],
  );
});

test('a discard in Azure removes the disk without the gallery', async (t) => {
  const double = await startDouble(t);
  double.addGallery('ci');
  const provider = openProvider(double, GALLERY);
  const abort = new AbortController();
  double.fault = ({ name }) => {
    if (name === 'POST disks/beginGetAccess') abort.abort();
    return undefined;
  };
  const request = await diskRequest(t, [0]);
  await assert.rejects(provider.upload(request, { signal: abort.signal }));
  assert.equal(double.ofType('Microsoft.Compute/disks').length, 1);
  double.cloud.resources.delete(
    `${double.cloud.resources.all()[0]?.id.split('/galleries/')[0]}/galleries/ci`,
  );
  await provider.discard(request.uploadId);
  assert.deepEqual(double.ofType('Microsoft.Compute/disks'), []);
});

test('an image for Arm64 needs a gallery in Azure', async (t) => {
  const double = await startDouble(t);
  double.addGallery('ci');
  const request = { ...(await diskRequest(t, [0])), metadata: { architecture: 'aarch64' } };
  await assert.rejects(openProvider(double).upload(request), (error) => {
    assert.ok(error instanceof CloudError);
    assert.match(error.message, /Arm64; set gallery-name/);
    return error.code === 'bad-request';
  });
  assert.deepEqual(double.requests, []);
  await openProvider(double, GALLERY).upload(request);
});
