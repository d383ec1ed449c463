// Only in test:all: it repeats the contract for another kind of image.
import { imageProviderContract } from '@nodepool-builder/image-builder/testing';
import { openProvider, startDouble } from './azure-fixture.ts';

imageProviderContract('AzureProvider with a gallery', async (t) => {
  const double = await startDouble(t);
  double.addGallery('ci');
  return openProvider(double, { 'gallery-name': 'ci', 'target-regions': ['northeurope'] });
});
