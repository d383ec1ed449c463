// Not a unit test: it starts Azurite
import { imageListContract, imageProviderContract } from '@nodepool-builder/image-builder/testing';
import { openProvider, startDouble } from './azure-fixture.ts';

imageProviderContract('AzureProvider with managed images', async (t) => openProvider(await startDouble(t)));

imageListContract('AzureProvider', async (t, endpoint) => {
  const double = await startDouble(t);
  const { subscription } = double;
  return {
    provider: openProvider({ subscription, endpoint, issueToken: () => double.issueToken() }),
    page: (marker) => {
      const next = marker === undefined ? {} : { nextLink: `${endpoint}/next?marker=${marker}` };
      return { type: 'application/json', body: JSON.stringify({ value: [], ...next }) };
    },
  };
});
