// Not a unit test: it starts Azurite
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { latestImage } from '@nodepool-builder/image-builder';
import { openProvider, startDouble } from './azure-fixture.ts';
import { diskRequest } from './disk.ts';

test('a filter in Azure may spell resource groups and regions in any way', async (t) => {
  const double = await startDouble(t);
  const provider = openProvider(double);
  const { externalId } = await provider.upload(await diskRequest(t, [0]));
  for (const [name, value, expected] of [
    ['resource-group', 'Images', externalId],
    ['location', 'West Europe', externalId],
    ['location', 'northeurope', undefined],
  ] as const) {
    const filter = { properties: new Map([[name, [value]]]) };
    for (const known of [[], [externalId]]) {
      const { latest } = latestImage(await provider.findImages(filter, { known }), filter);
      assert.equal(latest?.externalId, expected, `${name} ${value}`);
    }
  }
});

test('an Azure image’s name begins with a character that Azure accepts', async (t) => {
  const double = await startDouble(t);
  const provider = openProvider(double);
  for (const [index, externalName] of ['_-.debian', '___'].entries()) {
    await provider.upload(await diskRequest(t, [0], undefined, { uploadId: `u${index}`, externalName }));
  }
  const images = double.cloud.resources.all().filter(({ type }) => type === 'Microsoft.Compute/images');
  const names = images.map(({ name }) => name.slice(0, -9));
  assert.deepEqual(names, ['debian', 'image']);
});
