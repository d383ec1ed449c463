import { FakeImageProvider, imageProviderContract } from '@nodepool-builder/image-builder/testing';

imageProviderContract('FakeImageProvider', async () => new FakeImageProvider());
