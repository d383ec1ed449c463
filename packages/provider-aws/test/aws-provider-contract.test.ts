// Not a unit test: it starts servers and qemu-img.
import { foreignTo, imageListContract, imageProviderContract } from '@nodepool-builder/image-builder/testing';
import { awsFixture } from './aws-fixture.ts';

imageProviderContract('AwsProvider with ebs-direct', async (t) => {
  const { open } = await awsFixture(t, { pendingLists: 2 });
  return { provider: open(), foreign: foreignTo(open({ name: 'other' })) };
});

imageListContract('AwsProvider', async (t, endpoint) => ({
  provider: (await awsFixture(t)).open({}, { endpoint }),
  page: (marker) => {
    const next = marker === undefined ? '' : `<nextToken>${marker}</nextToken>`;
    const body = `<DescribeImagesResponse><requestId>r</requestId><imagesSet/>${next}</DescribeImagesResponse>`;
    return { type: 'text/xml', body };
  },
}));
