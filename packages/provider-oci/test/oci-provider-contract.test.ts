// Not a unit test: it starts docker-registry.
import { imageProviderContract } from '@nodepool-builder/image-builder/testing';
import { ociFixture } from './oci-fixture.ts';

for (const layout of ['artifact', 'container-disk'] as const) {
  imageProviderContract(`OciProvider with ${layout}`, async (t) => (await ociFixture(t)).open({ layout }));
}
