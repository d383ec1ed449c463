// Not a unit test: it starts Azurite
import { imageListContract, imageProviderContract } from '@nodepool-builder/image-builder/testing';
import { openProvider, startDouble } from './azure-fixture.ts';

imageProviderContract('AzureProvider with managed images', async (t) => openProvider(await startDouble(t)));

imageProviderContract('AzureProvider with a gallery', async (t) => {
  const double = await startDouble(t);
  double.addGallery('ci');
  return openProvider(double, { gallery: { name: 'ci', targetRegions: ['northeurope'], replicas: 1 } });
});

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
