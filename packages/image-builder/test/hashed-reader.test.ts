import assert from 'node:assert/strict';
import { truncateSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { temporaryDirectory } from '../../../test/fixtures/temporary-directory.ts';
import { withCode } from '../../../test/fixtures/with-code.ts';
import { SteadyFile } from '../src/hashed-reader/steady-file.ts';
import { checksumsOf } from '../src/hashed-reader.ts';
import { HashedReader, type Progress } from '../src/index.ts';
import { collect, coreutilsDigest, LARGE, PIECE, randomFile } from './hashed-reader/image-file.ts';
import { startedThreads } from './hashed-reader/started-threads.ts';

const ALL = ['md5', 'sha256'] as const;

for (const size of [0, 1, PIECE - 1, PIECE, PIECE + 1, 9 * PIECE + 7, LARGE - 1, LARGE + PIECE + 1]) {
  test(`a file of ${size} bytes is read and hashed completely`, async (t) => {
    const { path, content } = await randomFile(t, size);
    const reader = await HashedReader.open(path);
    t.after(() => reader.close());
    assert.equal(reader.size, size);
    assert.ok(content.equals(await collect(reader.pieces())));
    const checksums = await reader.checksums;
    for (const name of ALL) assert.equal(checksums[name], coreutilsDigest(name, path), name);
    assert.deepEqual(await checksumsOf(path), checksums);
  });
}

test('reading a file with known checksums needs no thread', async (t) => {
  const { path, content } = await randomFile(t, LARGE);
  const threads = startedThreads(t);
  const checksums = { md5: 'of md5sum', sha256: 'of sha256sum' };
  const reader = await HashedReader.open(path, { checksums });
  t.after(() => reader.close());
  assert.ok(content.equals(await collect(reader.pieces())));
  assert.deepEqual(await reader.checksums, checksums);
  assert.equal(threads.all.length, 0);
});

test('a file’s holes are read as zeros', async (t) => {
  const path = join(await temporaryDirectory(t), 'sparse.raw');
  const file = await open(path, 'w');
  await file.write('data', LARGE);
  await file.truncate(2 * LARGE);
  await file.close();
  const reader = await HashedReader.open(path);
  t.after(() => reader.close());
  const content = await collect(reader.pieces());
  assert.ok(content.equals(Buffer.concat([Buffer.alloc(LARGE), Buffer.from('data')], 2 * LARGE)));
  assert.equal((await reader.checksums).md5, coreutilsDigest('md5', path));
});

test('the progress of reading a file counts bytes up to its size', async (t) => {
  const { path } = await randomFile(t, 3 * PIECE);
  const seen: Progress[] = [];
  const reader = await HashedReader.open(path, { onProgress: (progress) => seen.push(progress) });
  t.after(() => reader.close());
  await collect(reader.pieces());
  assert.deepEqual(seen.at(-1), { done: 3 * PIECE, total: 3 * PIECE });
});

test('a stopped reading of a file can start over, with the whole file’s checksums', async (t) => {
  const { path, content } = await randomFile(t, LARGE);
  const reader = await HashedReader.open(path);
  t.after(() => reader.close());
  const broken = reader.pieces();
  await broken.next();
  await broken.return();
  assert.ok(content.equals(await collect(reader.pieces())));
  assert.equal((await reader.checksums).md5, coreutilsDigest('md5', path));
});

test('a second reading of a file hashes nothing', async (t) => {
  const { path, content } = await randomFile(t, LARGE);
  const reader = await HashedReader.open(path);
  t.after(() => reader.close());
  await collect(reader.pieces());
  const threads = startedThreads(t);
  assert.ok(content.equals(await collect(reader.pieces())));
  assert.equal(threads.all.length, 0);
});

test('a closed file reader yields no further piece, and does not report the file’s end', async (t) => {
  const { path } = await randomFile(t, LARGE);
  const threads = startedThreads(t);
  const reader = await HashedReader.open(path);
  const pieces = reader.pieces();
  await pieces.next();
  await reader.close();
  await threads.ended();
  await assert.rejects(pieces.next(), withCode('read-aborted'));
  await assert.rejects(reader.checksums, withCode('read-aborted'));
});

test('an abort ends the reading of a file with its reason', async (t) => {
  const { path } = await randomFile(t, LARGE);
  const abort = new AbortController();
  const reason = new Error('enough');
  const reader = await HashedReader.open(path, { signal: abort.signal });
  t.after(() => reader.close());
  const pieces = reader.pieces();
  await pieces.next();
  abort.abort(reason);
  await assert.rejects(pieces.next(), reason);
  await assert.rejects(reader.checksums, reason);
  await assert.rejects(HashedReader.open(path, { signal: abort.signal }), reason);
});

test('a file that changes causes an error before its last piece, and has no checksums', async (t) => {
  const { path } = await randomFile(t, LARGE);
  const reader = await HashedReader.open(path);
  t.after(() => reader.close());
  let given = 0;
  const read = async (): Promise<void> => {
    for await (const piece of reader.pieces()) {
      given += piece.length;
      truncateSync(path, LARGE + 1);
    }
  };
  await assert.rejects(read(), withCode('image-changed'));
  await assert.rejects(reader.checksums, withCode('image-changed'));
  assert.ok(given < LARGE);
});

test('a hashing thread that dies causes an error', { timeout: 60_000 }, async (t) => {
  const { path } = await randomFile(t, LARGE);
  const threads = startedThreads(t);
  const reader = await HashedReader.open(path);
  t.after(() => reader.close());
  let given = 0;
  const read = async (): Promise<void> => {
    for await (const piece of reader.pieces()) {
      given += piece.length;
      await threads.all[0]?.terminate();
    }
  };
  await assert.rejects(read(), /thread/);
  await assert.rejects(reader.checksums, /thread/);
  assert.ok(given < LARGE);
});

test('file readers share two threads, which end with the last reader', async (t) => {
  const threads = startedThreads(t);
  const files = await Promise.all([1, 2, 3].map((more) => randomFile(t, LARGE + more)));
  const readers = await Promise.all(files.map(({ path }) => HashedReader.open(path)));
  const contents = await Promise.all(readers.map((reader) => collect(reader.pieces())));
  for (const [index, { path, content }] of files.entries()) {
    assert.ok(contents[index]?.equals(content));
    const checksums = await readers[index]?.checksums;
    for (const name of ALL) assert.equal(checksums?.[name], coreutilsDigest(name, path));
  }
  assert.equal(threads.all.length, 2);
  await Promise.all(readers.map((reader) => reader.close()));
  await threads.ended();
});

/** Runs a function before each read of a file. */
function beforeReads(t: TestContext, before: (position: number) => Promise<void>): void {
  // oxlint-disable-next-line typescript/unbound-method -- called with its file below
  const { read } = SteadyFile.prototype;
  t.mock.method(SteadyFile.prototype, 'read', async function (this: SteadyFile, bytes: Buffer, at: number) {
    await before(at);
    return await read.call(this, bytes, at);
  });
}

test('a file reader reads one piece ahead of a consumer that pauses', async (t) => {
  const { path, content } = await randomFile(t, LARGE);
  const reads: number[] = [];
  beforeReads(t, async (position) => void reads.push(position));
  const reader = await HashedReader.open(path);
  t.after(() => reader.close());
  const { value: first } = await reader.pieces().next();
  for (let turn = 0; turn < 100; turn += 1) await setImmediate();
  assert.deepEqual(reads, [0, PIECE]);
  assert.ok(first !== undefined && content.subarray(0, PIECE).equals(first));
});

test('stopping a file reader waits for the read in progress', async (t) => {
  const { path } = await randomFile(t, LARGE);
  const reading = Promise.withResolvers<void>();
  beforeReads(t, async (position) => {
    if (position > 0) await reading.promise;
  });
  const reader = await HashedReader.open(path);
  t.after(() => reader.close());
  const pieces = reader.pieces();
  await pieces.next();
  let hasEnded = false;
  const end = pieces.return().then(() => (hasEnded = true));
  for (let turn = 0; turn < 10; turn += 1) await setImmediate();
  assert.equal(hasEnded, false);
  reading.resolve();
  await end;
});

test('an error while reading ahead is reported with its piece, however late the piece is requested', async (t) => {
  const { path } = await randomFile(t, LARGE);
  const failure = new Error('EIO');
  beforeReads(t, async (position) => {
    if (position > 0) throw failure;
  });
  const reader = await HashedReader.open(path);
  t.after(() => reader.close());
  const pieces = reader.pieces();
  await pieces.next();
  await setImmediate(); // an unhandled rejection would end the process now
  await assert.rejects(pieces.next(), failure);
});
