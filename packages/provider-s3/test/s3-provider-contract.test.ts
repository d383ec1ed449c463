// Not a unit test: it starts servers.
import { imageListContract, imageProviderContract } from '@nodepool-builder/image-builder/testing';
import { s3Fixture } from './s3-fixture.ts';

imageProviderContract('S3Provider', async (t) => {
  const { client, bucket, open } = await s3Fixture(t);
  const foreign = async (): Promise<string> => {
    await client.putObject({ Bucket: bucket, Key: 'theirs.raw', Body: 'theirs' });
    return 'theirs.raw';
  };
  return { provider: open({}, ['qcow2', 'raw']), foreign };
});

imageListContract('S3Provider', async (t, endpoint) => ({
  provider: (await s3Fixture(t)).open({ endpoint }),
  page: (marker) => {
    const next = `<NextContinuationToken>${marker}</NextContinuationToken>`;
    const rest = `<IsTruncated>${marker !== undefined}</IsTruncated>${marker === undefined ? '' : next}`;
    return { type: 'application/xml', body: `<ListBucketResult>${rest}</ListBucketResult>` };
  },
}));
