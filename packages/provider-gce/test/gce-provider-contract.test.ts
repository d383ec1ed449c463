// Not a unit test: it starts servers and qemu-img.
import { imageProviderContract } from '@nodepool-builder/image-builder/testing';
import { gceFixture } from './gce-fixture.ts';

imageProviderContract('GceProvider', async (t) => (await gceFixture(t, { pendingReads: 2 })).open());
