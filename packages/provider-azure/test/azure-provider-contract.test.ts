// Not a unit test: it starts Azurite
import { foreignTo, imageListContract, imageProviderContract } from '@nodepool-builder/image-builder/testing';
import { openProvider, startDouble } from './azure-fixture.ts';

imageProviderContract('AzureProvider with managed images', async (t) => {
  const double = await startDouble(t);
  return { provider: openProvider(double), foreign: foreignTo(openProvider(double, { name: 'other' })) };
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
