import { imageProviderContract } from '@nodepool-builder/image-builder/testing';
import { FakeImageProvider } from './fake-image-provider.ts';

imageProviderContract('FakeImageProvider', async () => {
  const provider = new FakeImageProvider();
  const foreign = async (): Promise<string> => {
    provider.foreign.add('theirs');
    return 'theirs';
  };
  return { provider, foreign };
});
