// Only in test:all: it repeats the contract for another kind of image.
import { foreignTo, imageProviderContract } from '@nodepool-builder/image-builder/testing';
import { openProvider, startDouble } from './azure-fixture.ts';

imageProviderContract('AzureProvider with a gallery', async (t) => {
  const double = await startDouble(t);
  double.addGallery('ci');
  const settings = { 'gallery-name': 'ci', 'target-regions': ['northeurope'] };
  const other = openProvider(double, { ...settings, name: 'other' });
  return { provider: openProvider(double, settings), foreign: foreignTo(other) };
});
