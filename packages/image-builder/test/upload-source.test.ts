import assert from 'node:assert/strict';
import { truncateSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { test } from 'node:test';
import { openUploadSource, type Progress } from '../src/index.ts';
import { temporaryDirectory } from './temporary-directory.ts';
import { collect, coreutilsDigest, LARGE, PIECE, randomFile } from './upload-source/image-file.ts';
import { startedThreads } from './upload-source/started-threads.ts';
import { withCode } from './with-code.ts';

const ALL = ['md5', 'sha256', 'sha512'] as const;

for (const size of [0, 1, PIECE - 1, PIECE, PIECE + 1, 9 * PIECE + 7, LARGE - 1, LARGE + PIECE + 1]) {
  test(`${size} bytes: every one of them for the wire, and in the digests of coreutils`, async (t) => {
    const { path, content } = await randomFile(t, size);
    const source = await openUploadSource(path, { digests: ALL });
    t.after(() => source.close());
    assert.equal(source.size, size);
    assert.ok(content.equals(await collect(source.pieces())));
    const digests = await source.digests;
    for (const name of ALL) assert.equal(digests[name], coreutilsDigest(name, path), name);
  });
}

test('only the digests that were asked for are there', async (t) => {
  const { path } = await randomFile(t, LARGE);
  const source = await openUploadSource(path, { digests: ['sha512', 'sha512'] });
  t.after(() => source.close());
  await collect(source.pieces());
  assert.deepEqual(await source.digests, { sha512: coreutilsDigest('sha512', path) });
});

test('without digests there is no thread', async (t) => {
  const { path, content } = await randomFile(t, LARGE);
  const threads = startedThreads(t);
  const source = await openUploadSource(path);
  t.after(() => source.close());
  assert.ok(content.equals(await collect(source.pieces())));
  assert.deepEqual(await source.digests, {});
  assert.equal(threads.all.length, 0);
});

test('holes are zeros', async (t) => {
  const path = join(await temporaryDirectory(t), 'sparse.raw');
  const file = await open(path, 'w');
  await file.write('data', LARGE);
  await file.truncate(2 * LARGE);
  await file.close();
  const source = await openUploadSource(path, { digests: ['md5'] });
  t.after(() => source.close());
  const content = await collect(source.pieces());
  assert.ok(content.equals(Buffer.concat([Buffer.alloc(LARGE), Buffer.from('data')], 2 * LARGE)));
  assert.equal((await source.digests).md5, coreutilsDigest('md5', path));
});

test('chunks of the stream are copies that one may keep', async (t) => {
  const { path, content } = await randomFile(t, LARGE + 1);
  const source = await openUploadSource(path, { digests: ['md5'] });
  t.after(() => source.close());
  assert.ok(content.equals(await buffer(source.stream())));
  assert.equal((await source.digests).md5, coreutilsDigest('md5', path));
});

test('progress goes up to the whole', async (t) => {
  const { path } = await randomFile(t, 3 * PIECE);
  const seen: Progress[] = [];
  const source = await openUploadSource(path, { onProgress: (progress) => seen.push(progress) });
  t.after(() => source.close());
  await collect(source.pieces());
  assert.deepEqual(seen.at(-1), { done: 100, total: 100 });
});

test('what broke off begins anew, and gives the digests of the whole', async (t) => {
  const { path, content } = await randomFile(t, LARGE);
  const source = await openUploadSource(path, { digests: ['md5'] });
  t.after(() => source.close());
  const broken = source.pieces();
  await broken.next();
  await broken.return();
  assert.ok(content.equals(await collect(source.pieces())));
  assert.equal((await source.digests).md5, coreutilsDigest('md5', path));
});

test('what is digested is sent again without being digested again', async (t) => {
  const { path, content } = await randomFile(t, LARGE);
  const source = await openUploadSource(path, { digests: ['md5'] });
  t.after(() => source.close());
  await collect(source.pieces());
  const threads = startedThreads(t);
  assert.ok(content.equals(await collect(source.pieces())));
  assert.equal(threads.all.length, 0);
});

test('a source that is closed gives no further piece, and no end that looks like the end of the file', async (t) => {
  const { path } = await randomFile(t, LARGE);
  const threads = startedThreads(t);
  const source = await openUploadSource(path, { digests: ['md5'] });
  const pieces = source.pieces();
  await pieces.next();
  await source.close();
  await threads.ended();
  await assert.rejects(pieces.next(), withCode('read-aborted'));
  await assert.rejects(source.digests, withCode('read-aborted'));
});

test('an abort ends the reading with its reason', async (t) => {
  const { path } = await randomFile(t, LARGE);
  const abort = new AbortController();
  const reason = new Error('enough');
  const source = await openUploadSource(path, { digests: ['md5'], signal: abort.signal });
  t.after(() => source.close());
  const pieces = source.pieces();
  await pieces.next();
  abort.abort(reason);
  await assert.rejects(pieces.next(), reason);
  await assert.rejects(source.digests, reason);
  await assert.rejects(openUploadSource(path, { signal: abort.signal }), reason);
});

test('a file that changes is an error before its last byte is given, and has no digests', async (t) => {
  const { path } = await randomFile(t, LARGE);
  const source = await openUploadSource(path, { digests: ['md5'] });
  t.after(() => source.close());
  let given = 0;
  const read = async (): Promise<void> => {
    for await (const piece of source.pieces()) {
      given += piece.length;
      truncateSync(path, LARGE + 1);
    }
  };
  await assert.rejects(read(), withCode('image-changed'));
  await assert.rejects(source.digests, withCode('image-changed'));
  assert.ok(given < LARGE);
});

test('a thread that dies is an error, too', { timeout: 60_000 }, async (t) => {
  const { path } = await randomFile(t, LARGE);
  const threads = startedThreads(t);
  const source = await openUploadSource(path, { digests: ['md5', 'sha256'] });
  t.after(() => source.close());
  let given = 0;
  const read = async (): Promise<void> => {
    for await (const piece of source.pieces()) {
      given += piece.length;
      await threads.all[0]?.terminate();
    }
  };
  await assert.rejects(read(), /thread/);
  await assert.rejects(source.digests, /thread/);
  assert.ok(given < LARGE);
});
