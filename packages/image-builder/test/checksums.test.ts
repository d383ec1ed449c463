import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { appendFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { checksumsOf } from '../src/checksums.ts';
import type { Progress } from '../src/index.ts';
import { temporaryDirectory } from './temporary-directory.ts';
import { withCode } from './with-code.ts';

const SIZE = 1_000_003;

/** Enough for threads. */
const LARGE = 20_000_003;

for (const size of [SIZE, LARGE]) {
  test(`the digests of ${size} bytes are those of md5sum and sha256sum`, async (t) => {
    const path = join(await temporaryDirectory(t), 'file');
    await writeFile(path, randomBytes(size));
    const { md5, sha256 } = await checksumsOf(path);
    assert.equal(md5, execFileSync('md5sum', [path], { encoding: 'utf8' }).split(' ')[0]);
    assert.equal(sha256, execFileSync('sha256sum', [path], { encoding: 'utf8' }).split(' ')[0]);
  });
}

test('progress counts bytes up to the size', async (t) => {
  const path = join(await temporaryDirectory(t), 'file');
  await writeFile(path, Buffer.alloc(SIZE));
  const seen: Progress[] = [];
  await checksumsOf(path, { onProgress: (progress) => seen.push(progress) });
  assert.ok(seen.length > 1);
  assert.deepEqual(seen.at(-1), { done: SIZE, total: SIZE });
});

test('an abort ends it with the reason of the signal', async (t) => {
  const path = join(await temporaryDirectory(t), 'file');
  await writeFile(path, Buffer.alloc(SIZE));
  const abort = new AbortController();
  const reason = new Error('enough');
  const work = checksumsOf(path, { signal: abort.signal, onProgress: () => abort.abort(reason) });
  await assert.rejects(work, reason);
});

test('a file that somebody still writes to has no checksums', async (t) => {
  const path = join(await temporaryDirectory(t), 'file');
  await writeFile(path, Buffer.alloc(SIZE));
  const work = checksumsOf(path, { onProgress: () => appendFileSync(path, 'more') });
  await assert.rejects(work, withCode('image-changed'));
});
