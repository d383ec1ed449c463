// Not a unit test: it runs GNU tar and qemu-img, and its files have holes of several GiB.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdtemp, open, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { dataExtents } from '@nodepool-builder/image-builder/internal';
import { diskArchive, diskSize } from '../src/sparse-tar.ts';

const GIB = 2 ** 30;

const run = promisify(execFile);

test('a disk for Compute Engine has whole GiB, and at least one', () => {
  assert.deepEqual([0, 1, GIB, GIB + 1].map(diskSize), [GIB, GIB, GIB, 2 * GIB]);
});

test('GNU tar restores a disk from our archive, padded with zeros to a whole GiB', async (t) => {
  // An odd size, and more parts than two headers can hold.
  const blocks = Array.from({ length: 60 }, (_, index) => index * 1024 * 1024);
  const disk = await diskWith(t, 61 * 1024 * 1024 + 17, [...blocks, 61 * 1024 * 1024 + 16]);
  const { extracted, listing } = await extract(t, disk);
  assert.match(listing, /^-rw-r--r-- 0\/0 +1073741824 1970-01-01 00:00 disk\.raw$/m);
  assert.equal((await stat(extracted)).size, GIB);
  await assertBegins(extracted, disk);
});

test('a tar archive of a disk of more than 8 GiB keeps its holes', async (t) => {
  const disk = await diskWith(t, 9 * GIB + 512, [0, 8 * GIB + 4096, 9 * GIB]);
  const { extracted, listing, bytes } = await extract(t, disk);
  assert.match(listing, / 10737418240 .* disk\.raw$/m);
  assert.ok(bytes < 4 * 1024 * 1024, `the archive has ${bytes} bytes`);
  const { size, blocks } = await stat(extracted);
  assert.equal(size, 10 * GIB);
  assert.ok(blocks * 512 < 8 * 1024 * 1024, `tar wrote ${blocks * 512} bytes`);
  for (const at of [0, 8 * GIB + 4096, 9 * GIB]) {
    assert.deepEqual(await bytesAt(extracted, at, 4), await bytesAt(disk, at, 4));
  }
});

test('a tar archive of a disk without data contains no data', async (t) => {
  const { extracted, bytes } = await extract(t, await diskWith(t, 2 * GIB, []));
  assert.equal((await stat(extracted)).size, 2 * GIB);
  assert.ok(bytes <= 10_240, `the archive has ${bytes} bytes`);
});

test('a tar archive of a full disk ends without a hole', async (t) => {
  const disk = await diskWith(t, GIB, [GIB - 4]);
  const { extracted } = await extract(t, disk);
  assert.deepEqual(await bytesAt(extracted, GIB - 4, 4), await bytesAt(disk, GIB - 4, 4));
});

test('a tar archive of the same disk is always the same', async (t) => {
  const disk = await diskWith(t, 5 * 1024 * 1024 + 17, [0, 3 * 1024 * 1024]);
  const digests = await Promise.all([disk, disk].map(tarDigest));
  assert.equal(digests[0], digests[1]);
});

test('an abort ends the writing of a tar archive', async (t) => {
  const disk = await diskWith(t, 5 * 1024 * 1024, [0, 3 * 1024 * 1024]);
  const parts = await dataExtents({ path: disk, format: 'raw' });
  await assert.rejects(async () => {
    for await (const _ of diskArchive(disk, parts, { signal: AbortSignal.abort(new Error('enough')) })) {
      // The first part of the data is no longer read.
    }
  }, /enough/);
});

async function directoryOf(t: TestContext): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'gce-tar-'));
  t.after(() => rm(directory, { recursive: true }));
  return directory;
}

/** Creates a file with holes, and four bytes (or fewer, at its end) of data at some offsets. */
async function diskWith(t: TestContext, size: number, places: readonly number[]): Promise<string> {
  const path = join(await directoryOf(t), 'disk');
  const file = await open(path, 'w');
  try {
    await file.truncate(size);
    for (const at of places) {
      const bytes = createHash('md5').update(String(at)).digest();
      await file.write(bytes, 0, Math.min(4, size - at), at);
    }
  } finally {
    await file.close();
  }
  return path;
}

/** Extracts the archive of a disk as Compute Engine does. */
async function extract(
  t: TestContext,
  disk: string,
): Promise<{ extracted: string; listing: string; bytes: number }> {
  const directory = await directoryOf(t);
  const archive = join(directory, 'archive.tar');
  const parts = await dataExtents({ path: disk, format: 'raw' });
  const file = await open(archive, 'w');
  await pipeline(diskArchive(disk, parts), file.createWriteStream());
  const env = { ...process.env, TZ: 'UTC', LC_ALL: 'C' };
  const { stdout } = await run('tar', ['--list', '--verbose', '--numeric-owner', '--file', archive], {
    env,
  });
  await run('tar', ['--extract', '--sparse', '--file', archive, '--directory', directory], { env });
  return { extracted: join(directory, 'disk.raw'), listing: stdout, bytes: (await stat(archive)).size };
}

async function bytesAt(path: string, position: number, length: number): Promise<Buffer> {
  const file = await open(path);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, position);
    return buffer.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}

/** Compares the first bytes of a file with another file; the rest must be a hole. */
async function assertBegins(longer: string, shorter: string): Promise<void> {
  const { size } = await stat(shorter);
  const digests = [longer, shorter].map(async (path) => {
    const digest = createHash('sha256');
    await pipeline(createReadStream(path, { end: size - 1 }), digest);
    return digest.digest('hex');
  });
  const [begin, all] = await Promise.all(digests);
  assert.equal(begin, all);
  const extents = await dataExtents({ path: longer, format: 'raw' });
  assert.ok(extents.every(({ start, length }) => start + length < size + 4096));
}

async function tarDigest(disk: string): Promise<string> {
  const digest = createHash('sha256');
  const parts = await dataExtents({ path: disk, format: 'raw' });
  await pipeline(diskArchive(disk, parts), digest);
  return digest.digest('hex');
}
