// Not a unit test: it starts servers and qemu-img.
import { imageProviderContract } from '@nodepool-builder/image-builder/testing';
import { awsFixture } from './aws-fixture.ts';

imageProviderContract('AwsProvider with ebs-direct', async (t) =>
  (await awsFixture(t, { pendingLists: 2 })).open(),
);
