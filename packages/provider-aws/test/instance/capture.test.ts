// Not a unit test: it starts servers.
import assert from 'node:assert/strict';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { ClaimRequest, Instance } from '@nodepool-builder/image-builder';
import { AwsError } from '../../../../test/doubles/aws/model.ts';
import { type InstanceFixture, instanceFixture, PUBLIC_KEY } from './instance-fixture.ts';

const CLAIM: ClaimRequest = { uploadId: 'u1', imageId: 'debian-1', imageName: 'debian' };

async function stoppedInstance({ openInstances }: InstanceFixture): Promise<Instance> {
  const request = { buildId: 'debian-1', image: 'base', publicKey: PUBLIC_KEY, port: 22 };
  const instance = await openInstances().launch(request);
  await instance.stop();
  return instance;
}

/** Returns the names of the AMIs, and the number of snapshots other than the base image's. */
function stored({ double }: InstanceFixture): [names: string[], snapshots: number] {
  const { images, snapshots } = double.region();
  const names = images.all().map(({ name }) => name);
  return [names.filter((name) => name !== 'base'), snapshots.all().length - 1];
}

async function temporaryFile(t: TestContext): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'captured-'));
  t.after(() => rm(directory, { recursive: true }));
  return join(directory, 'disk');
}

test('a captured AMI is claimed by one upload, copied and shared, and deleted as its image', async (t) => {
  const fixture = await instanceFixture(t, { pendingLists: 1 });
  const instance = await stoppedInstance(fixture);
  const { externalId = '' } = await instance.capture({ imageId: 'debian-1' });
  await instance.destroy();
  const provider = fixture.open({
    'imds-support': 'v2.0',
    'copy-regions': ['us-west-2'],
    'share-accounts': ['210987654321'],
  });
  assert.deepEqual(await provider.list(), []);
  assert.deepEqual(await provider.listPartialUploads(), []);
  assert.equal(await provider.claim('ami-00000000000000000', CLAIM), undefined);
  const [base] = fixture.double.region().images.all();
  assert.equal(await provider.claim(base?.id ?? '', CLAIM), undefined);
  assert.deepEqual(await provider.claim(externalId, CLAIM), { externalId });
  assert.deepEqual(await provider.claim(externalId, CLAIM), { externalId });
  assert.equal(await provider.claim(externalId, { ...CLAIM, uploadId: 'u2' }), undefined);
  assert.deepEqual(await fixture.openInstances().captures(), []);
  const [image, ...others] = await provider.list();
  assert.deepEqual(others, []);
  assert.deepEqual(
    [image?.externalId, image?.uploadId, image?.imageId, image?.imageName],
    [externalId, 'u1', 'debian-1', 'debian'],
  );
  assert.deepEqual(await provider.listPartialUploads(), []);
  assert.equal(fixture.double.region().images.get(externalId).registration.ImdsSupport, 'v2.0');
  const west = fixture.double.region('us-west-2');
  assert.equal(west.images.all().length, 1);
  assert.deepEqual([...(west.images.all()[0]?.sharedWith ?? [])], ['210987654321']);
  await provider.delete(externalId);
  assert.deepEqual(stored(fixture), [[], 0]);
  assert.deepEqual([west.images.all(), west.snapshots.all()], [[], []]);
});

test('an AWS capture that fails or is aborted leaves nothing', async (t) => {
  const fixture = await instanceFixture(t, { pendingLists: 1e9 });
  const { double } = fixture;
  const instance = await stoppedInstance(fixture);
  const abort = new AbortController();
  double.fault = ({ operation }) => {
    if (operation === 'CreateImage') setImmediate(() => abort.abort(new Error('enough')));
    return undefined;
  };
  await assert.rejects(instance.capture({ imageId: 'debian-1' }, { signal: abort.signal }), /enough/);
  assert.deepEqual(stored(fixture), [[], 0]);

  double.fault = ({ operation }) => {
    if (operation !== 'DescribeImages') return undefined;
    for (const image of double.region().images.all()) if (image.name !== 'base') image.state = 'failed';
    return undefined;
  };
  await assert.rejects(instance.capture({ imageId: 'debian-1' }), /is failed: .*build again/);
  assert.deepEqual(stored(fixture), [[], 0]);
});

test('the parts of an AWS capture that a killed process left are listed and removed', async (t) => {
  const fixture = await instanceFixture(t, { pendingLists: 1e9 });
  const { double, openInstances } = fixture;
  const instance = await stoppedInstance(fixture);
  const abort = new AbortController();
  double.fault = ({ operation }) => {
    if (operation === 'CreateImage') setImmediate(() => abort.abort(new Error('killed')));
    // As if the process were killed, which removes nothing.
    return operation === 'DeregisterImage' ? new AwsError('UnauthorizedOperation', 'no', 403) : undefined;
  };
  await assert.rejects(instance.capture({ imageId: 'debian-1' }, { signal: abort.signal }), /killed/);
  assert.deepEqual(stored(fixture), [[`debian-1-${instance.id}`], 1]);
  double.fault = ({ operation }) =>
    operation === 'DeleteSnapshot' ? new AwsError('UnauthorizedOperation', 'no', 403) : undefined;
  const [pending, ...others] = await openInstances().captures();
  assert.deepEqual([pending?.imageId, others], ['debian-1', []]);
  await assert.rejects(pending?.discard() ?? Promise.resolve(), /DeleteSnapshot/);
  assert.deepEqual(stored(fixture), [[], 1]);
  double.fault = () => undefined;
  const [snapshot] = await openInstances().captures();
  assert.match(snapshot?.externalId ?? '', /^snap-/);
  assert.equal(snapshot?.imageId, 'debian-1');
  await snapshot?.discard();
  assert.deepEqual(stored(fixture), [[], 0]);
});

test('a captured AMI is saved block by block, and verified', async (t) => {
  const fixture = await instanceFixture(t);
  const { double } = fixture;
  const captured = await (await stoppedInstance(fixture)).capture({ imageId: 'debian-1' });
  const path = await temporaryFile(t);
  await assert.rejects(captured.save('qcow2', path), { code: 'format-unavailable' });
  await assert.rejects(captured.save('raw', path, { maxDiskSize: 1 }), { code: 'image-too-large' });
  await captured.save('raw', path);
  const { size, blocks } = await stat(path);
  assert.equal(size, 2 ** 30);
  assert.ok(blocks * 512 <= 2 ** 20);
  for (const { blocks: digests } of double.region().snapshots.all()) digests.set(0, 'another');
  await assert.rejects(captured.save('raw', path), /block 0 arrived with a wrong checksum/);
  await assert.rejects(stat(path), { code: 'ENOENT' });
});
