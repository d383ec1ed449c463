// Not a unit test: it starts servers and qemu-img.
import { foreignTo, imageListContract, imageProviderContract } from '@nodepool-builder/image-builder/testing';
import { gceFixture } from './gce-fixture.ts';

imageProviderContract('GceProvider', async (t) => {
  const { open } = await gceFixture(t, { pendingReads: 2 });
  return { provider: open(), foreign: foreignTo(open({ name: 'other' })) };
});

imageListContract('GceProvider', async (t, endpoint) => ({
  provider: (await gceFixture(t)).open({}, { endpoint }),
  page: (nextPageToken) => {
    return { type: 'application/json', body: JSON.stringify({ kind: 'compute#imageList', nextPageToken }) };
  },
}));
