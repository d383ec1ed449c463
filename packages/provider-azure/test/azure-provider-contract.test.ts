// Not a unit test: it starts Azurite
import { imageProviderContract } from '@nodepool-builder/image-builder/testing';
import { openProvider, startDouble } from './azure-fixture.ts';

imageProviderContract('AzureProvider with managed images', async (t) => openProvider(await startDouble(t)));

imageProviderContract('AzureProvider with a gallery', async (t) => {
  const double = await startDouble(t);
  double.addGallery('ci');
  return openProvider(double, { gallery: { name: 'ci', targetRegions: ['northeurope'], replicas: 1 } });
});
