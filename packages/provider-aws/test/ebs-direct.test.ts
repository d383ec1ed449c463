// Not a unit test: it starts servers and qemu-img.
import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { UploadRequest } from '@nodepool-builder/image-builder';
import { checksumsOf } from '@nodepool-builder/image-builder/internal';
import { CloudError } from '@nodepool-builder/image-builder/plugin';
import type { AwsRequest } from '../../../test/doubles/aws/aws-double.ts';
import { AwsError } from '../../../test/doubles/aws/model.ts';
import { allBlocks } from '../../../test/doubles/aws/snapshots.ts';
import { awsFixture, SECRET } from './aws-fixture.ts';
import { digestsOf, requestFor, writeDisk, ZERO_BLOCK } from './disk.ts';

/** Returns the indexes of the uploaded blocks. */
function putBlocks(requests: readonly AwsRequest[]): unknown[] {
  return requests
    .filter(({ operation }) => operation === 'PutSnapshotBlock')
    .map(({ input }) => input.BlockIndex)
    .toSorted((one, other) => Number(one) - Number(other));
}

test('an upload to AWS sends only blocks with data, and AWS has exactly the file’s blocks', async (t) => {
  const { double, directory, open } = await awsFixture(t);
  const path = join(directory, 'disk.raw');
  await writeDisk(path, { 0: 'a', 9: 'b', 63: 'c' });
  await open().upload(requestFor(path));
  assert.deepEqual(putBlocks(double.requests), [0, 9, 63]);
  const [snapshot] = double.region().snapshots.all();
  assert.ok(snapshot);
  assert.deepEqual(allBlocks(snapshot), await digestsOf(path));
  assert.equal(snapshot.volumeSize, 1);
});

test('the next build’s upload to AWS sends changed blocks, and zeros over the last build’s data', async (t) => {
  const { double, directory, open } = await awsFixture(t, { pendingLists: 1 });
  const path = join(directory, 'disk.raw');
  await writeDisk(path, { 0: 'a', 9: 'b', 12: 'd', 63: 'c' });
  await open().upload(requestFor(path));
  await writeDisk(path, { 0: 'a', 9: 'B', 20: 'n', 63: 'c' });
  double.requests.length = 0;
  await open().upload(requestFor(path, 2));
  assert.deepEqual(putBlocks(double.requests), [9, 12, 20]);
  const second = double.region().snapshots.all()[1];
  assert.ok(second);
  const expected = new Map([...(await digestsOf(path)), [12, ZERO_BLOCK] as const]);
  assert.deepEqual(allBlocks(second), expected);

  // The third block equals the second.
  double.requests.length = 0;
  await open().upload(requestFor(path, 3));
  assert.deepEqual(putBlocks(double.requests), []);
  assert.equal(double.region().images.all().length, 3);
});

test('an upload to AWS sends all blocks if the last snapshot is missing or rejected as a parent', async (t) => {
  const { double, directory, open } = await awsFixture(t);
  const path = join(directory, 'disk.raw');
  await writeDisk(path, { 0: 'a', 9: 'b' });
  const provider = open();
  const { externalId } = await provider.upload(requestFor(path));
  double.fault = ({ operation, input }) =>
    operation === 'StartSnapshot' && input.ParentSnapshotId !== undefined
      ? new AwsError('ValidationException', 'no parent here')
      : undefined;
  double.requests.length = 0;
  await provider.upload(requestFor(path, 2));
  assert.deepEqual(putBlocks(double.requests), [0, 9]);
  await provider.delete(externalId);
  for (const image of await provider.list()) await provider.delete(image.externalId);
  double.requests.length = 0;
  double.fault = () => undefined;
  await provider.upload(requestFor(path, 3));
  assert.deepEqual(putBlocks(double.requests), [0, 9]);
});

test('lost responses, throttling and lagging lists in AWS result in one image', async (t) => {
  const { double, directory, open } = await awsFixture(t, { lag: 2, pendingLists: 2 });
  const path = join(directory, 'disk.raw');
  await writeDisk(path, { 0: 'a', 9: 'b' });
  const seen = new Set<string>();
  double.fault = ({ operation }) => {
    if (seen.has(operation)) return undefined;
    seen.add(operation);
    return operation === 'PutSnapshotBlock' ? new AwsError('RequestThrottledException', 'slow') : 'lost';
  };
  const { externalId } = await open().upload(requestFor(path));
  assert.deepEqual(
    double
      .region()
      .images.all()
      .map(({ id }) => id),
    [externalId],
  );
  assert.equal(double.region().snapshots.all().length, 1);
});

test('an AWS rejection is reported with its reason, leaves nothing, and shows no secret', async (t) => {
  const { double, directory, lines, open } = await awsFixture(t);
  const path = join(directory, 'disk.raw');
  await writeDisk(path, { 0: 'a' });
  double.fault = ({ operation }) =>
    operation === 'RegisterImage'
      ? new AwsError('UnauthorizedOperation', 'You are not authorized to perform: ec2:RegisterImage', 403)
      : undefined;
  await assert.rejects(open().upload(requestFor(path)), (error) => {
    assert.ok(error instanceof CloudError);
    assert.equal(error.code, 'forbidden');
    assert.match(error.message, /^provider ci: RegisterImage in us-east-1: .*ec2:RegisterImage/);
    assert.ok(!error.message.includes(SECRET));
    return true;
  });
  assert.deepEqual(double.region().snapshots.all(), []);
  assert.ok(!lines.join('\n').includes(SECRET));
});

test('a block that AWS rejects ends the upload, and a failed snapshot reports its reason', async (t) => {
  const { double, directory, open } = await awsFixture(t);
  const path = join(directory, 'disk.raw');
  await writeDisk(path, { 0: 'a', 9: 'b' });
  double.fault = ({ operation, input }) =>
    operation === 'PutSnapshotBlock' && input.BlockIndex === 9
      ? new AwsError('ValidationException', 'the block is damaged')
      : undefined;
  await assert.rejects(
    open().upload(requestFor(path)),
    /PutSnapshotBlock in us-east-1: the block is damaged/,
  );
  double.fault = ({ operation }) => {
    for (const snapshot of double.region().snapshots.all()) {
      if (operation !== 'DescribeSnapshots' || !snapshot.isComplete) continue;
      snapshot.state = 'error';
      snapshot.stateMessage = 'the volume could not be created';
    }
    return undefined;
  };
  await assert.rejects(open().upload(requestFor(path, 2)), /the volume could not be created/);
  assert.deepEqual(double.region().snapshots.all(), []);
});

test('an image that is copied and shared exists in each AWS region, and a deletion removes all of it', async (t) => {
  const { double, directory, open } = await awsFixture(t, { pendingLists: 1 });
  const path = join(directory, 'disk.raw');
  await writeDisk(path, { 0: 'a' });
  const provider = open({ 'copy-regions': ['eu-west-1', 'us-west-2'], 'share-accounts': ['210987654321'] });
  const { externalId } = await provider.upload(requestFor(path));
  for (const name of ['us-east-1', 'eu-west-1', 'us-west-2']) {
    const [image, ...others] = double.region(name).images.all();
    assert.ok(image, name);
    assert.deepEqual(others, [], name);
    assert.deepEqual([...image.sharedWith], ['210987654321'], name);
    assert.equal(image.state, 'available');
  }
  await provider.delete(externalId);
  for (const name of ['us-east-1', 'eu-west-1', 'us-west-2']) {
    assert.deepEqual([double.region(name).images.all(), double.region(name).snapshots.all()], [[], []], name);
  }
});

test('another account’s AMI is neither listed nor deleted', async (t) => {
  const { double, open } = await awsFixture(t);
  const base = { architecture: 'x86_64', registration: {}, snapshots: [], state: 'available' } as const;
  const account = '123456789012';
  const image = double.region().images.add({
    ...base,
    name: 'debian-13',
    owner: account,
    isPublic: false,
    pendingLists: 0,
    sharedWith: new Set<string>(),
  });
  const provider = open();
  assert.deepEqual(await provider.list(), []);
  await assert.rejects(provider.delete(image.id), { code: 'not-ours' });
  assert.deepEqual(await provider.listPartialUploads(), []);
});

test('only our own AMIs are found, unless the filter names another owner', async (t) => {
  const { double, open } = await awsFixture(t);
  const add = (name: string, owner: string, more: { deprecatedAt?: Date } = {}): string =>
    double.region().images.add({
      name,
      owner,
      architecture: 'x86_64',
      registration: {},
      snapshots: [],
      isPublic: true,
      state: 'available',
      pendingLists: 0,
      sharedWith: new Set<string>(),
      ...more,
    }).id;
  const own = add('debian-13-a', '123456789012');
  const deprecated = add('debian-13-old', '123456789012', { deprecatedAt: new Date(0) });
  const foreign = add('debian-13-b', '666666666666');
  const provider = open();
  const idsOf = async (owner?: string[]): Promise<string[]> => {
    const found = await provider.findImages({ name: ['debian-13-*'], ...(owner && { owner }) });
    return found.filter(({ isUsable }) => isUsable).map(({ externalId }) => externalId);
  };
  assert.deepEqual(await idsOf(), [own]);
  assert.deepEqual(await idsOf(['666666666666']), [foreign]);
  const all = await provider.findImages({ name: ['debian-13-old'] }, { withRefused: true });
  assert.deepEqual(
    all.map(({ externalId, status }) => [externalId, status]),
    [[deprecated, 'deprecated']],
  );
});

test('an upload of other bytes to AWS uses no block from an earlier attempt', async (t) => {
  const { double, directory, open } = await awsFixture(t);
  const path = join(directory, 'disk.raw');
  const request = async (blocks: Record<number, string>): Promise<UploadRequest> => {
    await writeDisk(path, blocks);
    const { file, ...others } = requestFor(path);
    return { ...others, file: { ...file, checksums: await checksumsOf(path) } };
  };
  const abort = new AbortController();
  double.fault = ({ operation }) => {
    if (operation !== 'PutSnapshotBlock' && !abort.signal.aborted) return undefined;
    if (double.requests.filter((one) => one.operation === 'PutSnapshotBlock').length < 2) return undefined;
    abort.abort();
    return new AwsError('UnauthorizedOperation', 'not even a cleanup', 403);
  };
  const first = await request({ 0: 'a', 9: 'b', 12: 'c' });
  await assert.rejects(open({ 'upload-concurrency': 1 }).upload(first, { signal: abort.signal }));
  double.fault = () => undefined;
  const [left] = double.region().snapshots.all();
  assert.equal(left?.blocks.size, 1);

  await open().upload(await request({ 0: 'x', 9: 'b' }));
  const [snapshot, ...others] = double.region().snapshots.all();
  assert.ok(snapshot);
  assert.deepEqual(allBlocks(snapshot), await digestsOf(path));
  assert.deepEqual(others, []);
});

test('an upload to AWS that starts from scratch removes the earlier attempt’s snapshot before any list shows it', async (t) => {
  const { double, directory, open } = await awsFixture(t, { lag: 6 });
  const path = join(directory, 'disk.raw');
  const upload = async (id: number, content: string, signal?: AbortSignal): Promise<unknown> => {
    await writeDisk(path, { 0: 'a', 9: content });
    return await open().upload(requestFor(path, id), signal && { signal });
  };
  const snapshots = (): readonly string[] =>
    double
      .region()
      .snapshots.all()
      .map(({ state }) => state);
  await upload(1, 'b');
  const abort = new AbortController();
  double.fault = ({ operation }) => {
    if (operation !== 'PutSnapshotBlock' && !abort.signal.aborted) return undefined;
    abort.abort();
    return new AwsError('UnauthorizedOperation', 'not even a cleanup', 403);
  };
  await assert.rejects(upload(2, 'c', abort.signal));
  assert.deepEqual(snapshots(), ['completed', 'pending']);
  double.fault = () => undefined;
  await upload(3, 'd'); // later uploads use its snapshot as parent
  await upload(2, 'c');
  assert.deepEqual(snapshots(), ['completed', 'completed', 'completed']);
});

test('uploads of one image to AWS that end at the same time all succeed', async (t) => {
  const { double, directory, open } = await awsFixture(t);
  const path = join(directory, 'disk.raw');
  await writeDisk(path, { 0: 'a' });
  const provider = open();
  const numbers = Array.from({ length: 12 }, (_, index) => index + 1);
  await Promise.all(numbers.map((number) => provider.upload(requestFor(path, number))));
  assert.equal(double.region().images.all().length, numbers.length);
});

test('a discard in AWS works without the parent snapshot', async (t) => {
  const { double, directory, open } = await awsFixture(t);
  const path = join(directory, 'disk.raw');
  await writeDisk(path, { 0: 'a' });
  const provider = open();
  const { externalId } = await provider.upload(requestFor(path));
  double.fault = ({ operation }) =>
    operation === 'StartSnapshot' ? new AwsError('InternalServerException', 'no', 500) : undefined;
  await assert.rejects(provider.upload(requestFor(path, 2)), cloudError);
  double.fault = () => undefined;
  await provider.delete(externalId);
  await provider.discard('u2');
  assert.deepEqual(double.region().snapshots.all(), []);
  assert.deepEqual(await readdir(join(directory, 'records/unfinished')), []);
});

function cloudError(error: unknown): boolean {
  return error instanceof CloudError;
}
