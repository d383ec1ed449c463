// Only in test:all: it has many limits of a registry.
import assert from 'node:assert/strict';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { requestFor, writeDisk } from './disk.ts';
import { doubleFixture } from './double-fixture.ts';

test('an upload to a registry obeys bandwidth-limit', async (t) => {
  const { directory, open: openProvider } = await doubleFixture(t);
  const path = join(directory, 'disk.qcow2');
  await writeDisk(path, 5);
  const request = await requestFor(path);
  const start = performance.now();
  // 4 MiB in chunks of 1 MiB: the last one waits for three others.
  await openProvider({ 'bandwidth-limit': 3 * 2 ** 20 }).upload(request);
  assert.ok(performance.now() - start >= 1000);
});

test('an abort ends an upload that waits for the registry, and nothing is left', async (t) => {
  const { double, directory, open: openProvider } = await doubleFixture(t);
  const path = join(directory, 'disk.qcow2');
  await writeDisk(path, 5);
  const abort = new AbortController();
  double.fault = ({ operation }) => {
    if (operation !== 'PATCH blobs/uploads') return undefined;
    abort.abort(new Error('it is enough'));
    return { status: 503, headers: { 'retry-after': '100' } };
  };
  const provider = openProvider();
  const start = performance.now();
  await assert.rejects(provider.upload(await requestFor(path), { signal: abort.signal }), /it is enough/);
  assert.ok(performance.now() - start < 50_000);
  assert.equal(double.state.uploads.size, 0);
  assert.deepEqual(await provider.listPartialUploads(), []);
});

test('the memory for an upload to a registry does not grow with the image', async (t) => {
  const { double, directory, open: openProvider } = await doubleFixture(t);
  const path = join(directory, 'disk.qcow2');
  await writeDisk(path, 4);
  const file = await open(path, 'r+');
  await file.truncate(2 ** 29);
  await file.close();
  const before = process.memoryUsage().arrayBuffers;
  let most = 0;
  double.fault = () => {
    most = Math.max(most, process.memoryUsage().arrayBuffers - before);
    return undefined;
  };
  const request = await requestFor(path);
  await openProvider({ compression: 'gzip' }).upload(request);
  assert.ok(most < 100 * 2 ** 20, `${most} bytes`);
});
