// Only in test:all: it kills an upload at each step.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Fault } from '../../../test/doubles/oci/registry-double.ts';
import { requestFor, writeDisk } from './disk.ts';
import { type DoubleFixture, doubleFixture } from './double-fixture.ts';

/** Runs an upload in a separate process, which is killed when the double receives a request. */
async function killAt(
  { double, directory, settings }: DoubleFixture,
  [step, count, fault]: readonly [string, number, Fault],
  path: string,
  isHashed = true,
): Promise<void> {
  const program = join(import.meta.dirname, 'killed-upload.ts');
  const args = [...process.execArgv.filter((argument) => !argument.startsWith('--test')), program];
  const child = spawn(process.execPath, [...args, JSON.stringify({ settings, directory, path, isHashed })], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const ended = once(child, 'exit');
  let seen = 0;
  double.fault = ({ operation }) => {
    if (operation !== step) return undefined;
    seen += 1;
    if (seen !== count) return undefined;
    child.kill('SIGKILL');
    return fault;
  };
  assert.deepEqual(await ended, [null, 'SIGKILL']);
  double.fault = () => undefined;
}

/** Requests that create or change something. The uploading process is killed once at each of them. */
const STEPS = [
  ['POST blobs/uploads', 1, 'lost'],
  ['PATCH blobs/uploads', 1, 'lost'],
  ['PATCH blobs/uploads', 3, 'dropped'],
  ['PATCH blobs/uploads', 4, { cut: 500_000 }],
  ['PUT blobs/uploads', 1, 'dropped'],
  ['PUT blobs/uploads', 1, 'lost'],
  ['PUT blobs/uploads', 2, 'lost'],
  ['PUT manifests', 1, 'dropped'],
  ['PUT manifests', 1, 'lost'],
  ['PUT manifests', 2, 'lost'],
] as const;

for (const step of STEPS) {
  const [operation, count, fault] = step;
  const title = `${operation} ${count} (${typeof fault === 'string' ? fault : 'cut'})`;
  for (const end of ['an upload', 'a discard', 'a removal of partial uploads'] as const) {
    test(`nothing is left over after SIGKILL at ${title}, and then ${end}`, async (t) => {
      const fixture = await doubleFixture(t);
      const { double, directory } = fixture;
      const path = join(directory, 'disk.qcow2');
      await writeDisk(path, 9);
      await killAt(fixture, step, path);

      const provider = fixture.open();
      if (end === 'an upload') {
        const { externalId } = await provider.upload(await requestFor(path));
        const ids = (await provider.list()).map((image) => image.externalId);
        assert.deepEqual(ids, [externalId]);
        assert.deepEqual([...double.state.tags.keys()], ['debian-debian-0000000001', 'debian-latest']);
        assert.equal(double.state.manifests.size, 1);
        const sent = double.requests
          .filter((request) => request.operation === 'PATCH blobs/uploads')
          .reduce((total, { bytes }) => total + bytes, 0);
        const size = Math.max(...[...double.state.blobs.values()].map((blob) => blob.length));
        // Only the chunk that was in flight may be sent twice.
        assert.ok(sent <= size + 2 ** 20, `${sent} bytes for a blob of ${size}`);
      } else if (end === 'a discard') {
        await provider.discard('u1');
        assert.equal(double.state.manifests.size, 0);
      } else {
        for (const partial of await provider.listPartialUploads()) assert.equal(await partial.remove(), true);
      }
      assert.deepEqual(await provider.listPartialUploads(), []);
      // The registry forgets uploads whose URL is unknown, because the response to their start or a small chunk was
      // lost.
      const forgotten = operation === 'POST blobs/uploads' ? 1 : 0;
      assert.equal(double.state.uploads.size, forgotten);
    });
  }
}

test('an upload that the registry has lost starts again', async (t) => {
  const fixture = await doubleFixture(t, { losesBrokenChunks: true });
  const { double, directory } = fixture;
  const path = join(directory, 'disk.qcow2');
  await writeDisk(path, 9);
  await killAt(fixture, ['PATCH blobs/uploads', 2, { cut: 1000 }], path);
  const provider = fixture.open();
  await provider.upload(await requestFor(path));
  assert.equal((await provider.list()).length, 1);
  assert.equal(double.state.uploads.size, 0);
});

for (const isHashed of [true, false]) {
  test(`another file with the same upload id starts again, ${isHashed ? 'with' : 'without'} known checksums`, async (t) => {
    const fixture = await doubleFixture(t);
    const { double, directory } = fixture;
    const path = join(directory, 'disk.qcow2');
    await writeDisk(path, 9);
    await killAt(fixture, ['PATCH blobs/uploads', 2, 'lost'], path, isHashed);
    await writeDisk(path, 9);
    const provider = fixture.open();
    const request = await requestFor(path);
    const { checksums, ...file } = request.file;
    await provider.upload(isHashed ? request : { ...request, file });
    assert.deepEqual((await provider.list())[0]?.checksums, checksums);
    assert.equal(double.state.uploads.size, 0);
  });
}

test('a partial upload to a registry that continues is not removed', async (t) => {
  const fixture = await doubleFixture(t);
  const { directory } = fixture;
  const path = join(directory, 'disk.qcow2');
  await writeDisk(path, 9);
  await killAt(fixture, ['PATCH blobs/uploads', 2, 'lost'], path);
  const provider = fixture.open();
  const [partial] = await provider.listPartialUploads();
  assert.match(
    partial?.subject ?? '',
    /^upload of 127\.0\.0\.1:\d+\/ci\/images:debian-debian-0000000001 \(unfinished\)$/,
  );
  await provider.upload(await requestFor(path));
  assert.equal(await partial?.remove(), false);
  assert.equal((await provider.list()).length, 1);
});
