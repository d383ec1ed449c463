import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import type { Worker } from 'node:worker_threads';
import { openUploadSource } from '../../src/index.ts';
import { HashThreads } from '../../src/upload-source/hash-threads.ts';
import { collect, coreutilsDigest, LARGE, randomFile } from './image-file.ts';
import { startedThreads } from './started-threads.ts';

const DIGESTS = ['md5', 'sha256'] as const;

test('files that are read at the same time share two threads, which end with the last file', async (t) => {
  const started = startedThreads(t);
  const threads = new HashThreads();
  const files = await Promise.all([1, 2, 3].map((more) => randomFile(t, LARGE + more)));
  const sources = await Promise.all(
    files.map(({ path }) => openUploadSource(path, { digests: DIGESTS, threads })),
  );
  const contents = await Promise.all(sources.map((source) => collect(source.pieces())));
  for (const [index, { path, content }] of files.entries()) {
    assert.ok(contents[index]?.equals(content));
    for (const name of DIGESTS) {
      assert.equal((await sources[index]?.digests)?.[name], coreutilsDigest(name, path));
    }
  }
  assert.equal(started.all.length, 2);
  await Promise.all(sources.map((source) => source.close()));
  await started.ended();
});

test('memory is used again by the next file', async () => {
  const threads = new HashThreads();
  const first = threads.digester(['md5']);
  await first.close();
  const second = threads.digester(['md5']);
  await second.close();
  assert.equal(second.memory, first.memory);
});

test('files at the same time have memory of their own', async (t) => {
  const threads = new HashThreads();
  const [one, other] = [threads.digester(['md5']), threads.digester(['md5'])];
  t.after(() => Promise.all([one.close(), other.close()]));
  assert.notEqual(one.memory, other.memory);
});

test('after a thread has died new files get a new one', async (t) => {
  const started = once(process, 'worker');
  const threads = new HashThreads();
  const first = threads.digester(['sha256']);
  t.after(() => first.close());
  const [worker] = (await started) as [Worker];
  await worker.terminate();
  await assert.rejects(first.digest(), /thread/);
  const second = threads.digester(['sha256']);
  t.after(() => second.close());
  const empty = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';
  assert.deepEqual(await second.digest(), { sha256: empty });
});
