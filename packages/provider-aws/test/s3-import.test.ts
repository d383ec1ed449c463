// Only in test:all: it repeats the contract for two further ways to import.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { after, type TestContext, test } from 'node:test';
import { S3 } from '@aws-sdk/client-s3';
import { CloudError } from '@nodepool-builder/image-builder/plugin';
import { foreignTo, imageProviderContract } from '@nodepool-builder/image-builder/testing';
import { AwsError } from '../../../test/doubles/aws/model.ts';
import type { AwsDoubleOptions } from '../../../test/doubles/aws/region.ts';
import { startS3Server } from '../../../test/fixtures/s3/s3-server.ts';
import type { AwsEntry } from '../src/aws-settings.ts';
import { type AwsFixture, awsFixture } from './aws-fixture.ts';
import { requestFor, writeDisk } from './disk.ts';

const server = await startS3Server();
after(() => server.stop());

interface ImportFixture extends AwsFixture {
  readonly settings: Partial<AwsEntry>;
  readonly s3: S3;
  readonly bucket: string;
  /** Returns the keys of all objects in the bucket. */
  readonly keys: () => Promise<string[]>;
}

/** Starts an EC2 double next to a real S3 server, from which it imports. */
async function importFixture(
  t: TestContext,
  method: AwsEntry['import-method'],
  options: Partial<AwsDoubleOptions> = {},
): Promise<ImportFixture> {
  const { endpoint, region, credentials } = server;
  const s3 = new S3({ endpoint, region, credentials, forcePathStyle: true });
  t.after(() => s3.destroy());
  const Bucket = `images-${randomUUID()}`;
  await s3.createBucket({ Bucket });
  const keys = async (): Promise<string[]> => {
    const { Contents: objects = [] } = await s3.listObjectsV2({ Bucket });
    return objects.map(({ Key = '' }) => Key);
  };
  const fixture = await awsFixture(t, {
    pendingLists: 2,
    ...options,
    credentials,
    objectSize: async (bucket, key) => (bucket === Bucket && (await keys()).includes(key) ? 1 : undefined),
  });
  const settings = { 'import-method': method, 'bucket-name': Bucket, 's3-endpoint': endpoint } as const;
  return { ...fixture, settings, s3, bucket: Bucket, keys };
}

for (const method of ['snapshot', 'image'] as const) {
  imageProviderContract(`AwsProvider with import-method ${method}`, async (t) => {
    const { open, settings } = await importFixture(t, method);
    return { provider: open(settings), foreign: foreignTo(open({ ...settings, name: 'other' })) };
  });

  test(`an AWS ${method} import deletes its object once the AMI exists, which has all tags`, async (t) => {
    const { double, directory, open, settings, keys } = await importFixture(t, method);
    const path = join(directory, 'disk.raw');
    await writeDisk(path, { 0: 'a' });
    const provider = open(settings);
    const { externalId } = await provider.upload(requestFor(path));
    assert.deepEqual(await keys(), []);
    assert.deepEqual(
      (await provider.list()).map((image) => image.externalId),
      [externalId],
    );
    const [snapshot] = double.region().snapshots.all();
    assert.ok(snapshot?.tags.some(({ Key, Value }) => Key === 'nodepool_upload_id' && Value === 'u1'));
    await provider.delete(externalId);
    assert.deepEqual([double.region().images.all(), double.region().snapshots.all()], [[], []]);
  });

  test(`an AWS ${method} import waits for a free slot, and a failed one reports AWS’s reason and leaves nothing`, async (t) => {
    const { double, directory, open, settings, keys } = await importFixture(t, method);
    const path = join(directory, 'disk.raw');
    await writeDisk(path, { 0: 'a' });
    const operation = method === 'snapshot' ? 'ImportSnapshot' : 'ImportImage';
    let failures = 2;
    double.fault = (request) =>
      request.operation === operation && failures-- > 0
        ? new AwsError('ResourceCountLimitExceeded', 'You have reached your limit of active import tasks')
        : undefined;
    const provider = open(settings);
    const { externalId } = await provider.upload(requestFor(path));
    await provider.delete(externalId);
    const tasks = method === 'snapshot' ? 'snapshotImports' : 'imageImports';
    double.fault = () => {
      for (const task of double.region()[tasks].all()) {
        if (task.status !== 'active') continue;
        task.status = 'deleted';
        task.statusMessage = 'ClientError: Disk validation failed [Unsupported file system]';
      }
      return undefined;
    };
    await assert.rejects(provider.upload(requestFor(path, 2)), (error) => {
      assert.ok(error instanceof CloudError);
      assert.equal(error.code, 'image-failed');
      assert.match(error.message, /import of debian-0000000002 .*Disk validation failed/);
      return true;
    });
    assert.deepEqual(await keys(), []);
    assert.deepEqual([double.region().images.all(), double.region().snapshots.all()], [[], []]);
  });

  test(`a discard finds an AWS ${method} import among others, and removes it alone`, async (t) => {
    const { double, directory, open, settings, keys } = await importFixture(t, method, { pageSize: 1 });
    const path = join(directory, 'disk.raw');
    await writeDisk(path, { 0: 'a' });
    const provider = open(settings);
    const { externalId } = await provider.upload(requestFor(path));
    const abort = new AbortController();
    double.fault = ({ operation }) => {
      const isCleanup = abort.signal.aborted;
      if (operation === 'DescribeImportSnapshotTasks' || operation === 'DescribeImportImageTasks')
        abort.abort();
      return isCleanup ? new AwsError('UnauthorizedOperation', 'not even a cleanup', 403) : undefined;
    };
    await assert.rejects(provider.upload(requestFor(path, 2), { signal: abort.signal }));
    double.fault = () => undefined;
    assert.equal((await keys()).length, 1);
    await open(settings).discard('u2');
    assert.deepEqual(await keys(), []);
    const tasks = double.region()[method === 'snapshot' ? 'snapshotImports' : 'imageImports'].all();
    assert.deepEqual(
      tasks.map(({ status }) => status),
      ['completed', 'deleted'],
    );
    const images = await provider.list();
    assert.deepEqual(
      images.map((image) => image.externalId),
      [externalId],
    );
  });

  test(`an AWS ${method} import aborts the multipart upload that a killed attempt has left`, async (t) => {
    const { double, directory, open, settings, s3, bucket: Bucket, keys } = await importFixture(t, method);
    const path = join(directory, 'disk.raw');
    await writeDisk(path, { 0: 'a' });
    const abort = new AbortController();
    double.fault = ({ operation }) => {
      const isCleanup = abort.signal.aborted;
      if (operation.startsWith('DescribeImport')) abort.abort();
      return isCleanup ? new AwsError('UnauthorizedOperation', 'like a killed process', 403) : undefined;
    };
    await assert.rejects(open(settings).upload(requestFor(path), { signal: abort.signal }));
    double.fault = () => undefined;
    const [Key = ''] = await keys();
    await s3.deleteObject({ Bucket, Key });
    await s3.createMultipartUpload({ Bucket, Key });
    await open(settings).upload(requestFor(path));
    assert.deepEqual(await keys(), []);
    assert.deepEqual((await s3.listMultipartUploads({ Bucket })).Uploads ?? [], []);
  });

  test(`an AWS ${method} import whose process was killed when it set the tags leaves no object`, async (t) => {
    const { double, directory, open, settings, keys } = await importFixture(t, method);
    const path = join(directory, 'disk.raw');
    await writeDisk(path, { 0: 'a' });
    const abort = new AbortController();
    double.fault = ({ operation }) => {
      const isCleanup = abort.signal.aborted;
      if (operation === 'CreateTags') abort.abort();
      return isCleanup ? new AwsError('UnauthorizedOperation', 'like a killed process', 403) : undefined;
    };
    await assert.rejects(open(settings).upload(requestFor(path), { signal: abort.signal }));
    double.fault = () => undefined;
    const { externalId } = await open(settings).upload(requestFor(path));
    assert.deepEqual(
      double
        .region()
        .images.all()
        .map(({ id }) => id),
      [externalId],
    );
    assert.deepEqual(await keys(), []);
  });

  test(`an AWS ${method} import that is not listed yet is awaited, and aarch64 becomes arm64`, async (t) => {
    const { double, directory, open, settings } = await importFixture(t, method);
    const path = join(directory, 'disk.raw');
    await writeDisk(path, { 0: 'a' });
    let unknown = 2;
    double.fault = ({ operation }) =>
      operation.startsWith('DescribeImport') && unknown-- > 0
        ? new AwsError('InvalidConversionTaskId', 'The import task does not exist')
        : undefined;
    await open(settings).upload({ ...requestFor(path), metadata: { architecture: 'aarch64' } });
    assert.deepEqual(
      double
        .region()
        .images.all()
        .map(({ architecture }) => architecture),
      ['arm64'],
    );
  });
}
