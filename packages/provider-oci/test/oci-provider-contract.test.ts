// Not a unit test: it starts docker-registry.
import { foreignTo, imageListContract, imageProviderContract } from '@nodepool-builder/image-builder/testing';
import { doubleFixture } from './double-fixture.ts';
import { ociFixture } from './oci-fixture.ts';

imageProviderContract('OciProvider with artifact', async (t) => {
  const { open } = await ociFixture(t);
  const foreign = foreignTo(open({ layout: 'artifact', name: 'other' }));
  return { provider: open({ layout: 'artifact' }), foreign };
});

imageListContract('OciProvider', async (t, endpoint) => ({
  provider: (await doubleFixture(t)).open({
    endpoint,
    repository: `${new URL(endpoint).host}/ci/images`,
  }),
  page: (marker) => ({
    type: 'application/json',
    body: JSON.stringify({ name: 'ci/images', tags: marker === undefined ? null : [marker] }),
    ...(marker !== undefined && {
      headers: { link: `</v2/ci/images/tags/list?last=${marker}>; rel="next"` },
    }),
  }),
}));
