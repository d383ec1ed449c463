import { imageProviderContract } from '@nodepool-builder/image-builder/testing';
import { FakeImageProvider } from './fake-image-provider.ts';

imageProviderContract('FakeImageProvider', async () => new FakeImageProvider());
