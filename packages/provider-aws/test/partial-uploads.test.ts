// Not a unit test: it starts servers and qemu-img.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { awsFixture } from './aws-fixture.ts';
import { requestFor, writeDisk } from './disk.ts';

test('a snapshot that the AMI of a finished upload does not use is an orphan, and the AMI’s own are not', async (t) => {
  const { double, directory, open } = await awsFixture(t);
  const path = join(directory, 'disk.raw');
  await writeDisk(path, { 0: 'a' });
  const provider = open({ 'copy-regions': ['eu-west-1'] });
  await provider.upload(requestFor(path));
  assert.deepEqual(await provider.listPartialUploads(), []);
  const regions = [double.region(), double.region('eu-west-1')];
  const orphans = regions.map((region) => {
    const tags = region.snapshots.all()[0]?.tags;
    const state = {
      volumeSize: 1,
      state: 'pending',
      pendingLists: 0,
      isComplete: false,
      blocks: new Map(),
    } as const;
    return region.snapshots.add({ ...state, tags, sharedWith: new Set() });
  });
  const partial = await provider.listPartialUploads();
  assert.deepEqual(
    partial.map(({ uploadId, subject }) => [uploadId, subject]),
    orphans.map(({ id }, index) => ['u1', `snapshot ${id} in ${regions[index]?.name} (pending)`]),
  );
  for (const one of partial) assert.equal(await one.remove(), true);
  assert.deepEqual(
    regions.map((region) => region.snapshots.all().length),
    [1, 1],
  );
  assert.deepEqual(await provider.listPartialUploads(), []);

  // The copy is incomplete, and AWS may not show its snapshot yet.
  const [copy] = double.region('eu-west-1').images.all();
  assert.ok(copy);
  Object.assign(copy, { state: 'pending', pendingLists: 100, snapshots: [] });
  const subjects = (await provider.listPartialUploads()).map(({ subject }) => subject);
  assert.deepEqual(subjects, [`AMI ${copy.id} in eu-west-1 (pending)`]);
});
