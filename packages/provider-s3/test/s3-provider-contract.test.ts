// Not a unit test: it starts servers.
import { imageProviderContract } from '@nodepool-builder/image-builder/testing';
import { s3Fixture } from './s3-fixture.ts';

imageProviderContract('S3Provider', async (t) => (await s3Fixture(t)).open({}, ['qcow2', 'raw']));
