import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';
import { Digester } from '../../src/hashed-reader/digester.ts';
import { PIECE } from './image-file.ts';

const EMPTY = {
  md5: 'd41d8cd98f00b204e9800998ecf8427e',
  sha256: 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
};

test('a hashing slot is filled again only once its bytes are digested', async (t) => {
  const digester = new Digester(1);
  t.after(() => digester.close());
  const first = await digester.slot();
  const digested = Promise.withResolvers<void>();
  first.done = digested.promise;
  const others = new Set([await digester.slot()]);
  const next = (async () => {
    for (let slot = await digester.slot(); slot !== first; slot = await digester.slot()) others.add(slot);
  })();
  for (let turn = 0; turn < 10; turn += 1) await setImmediate();
  assert.equal(others.size, 5);
  assert.ok([...others].every(({ begin, bytes }) => begin >= PIECE && bytes.length === PIECE));
  digested.resolve();
  await next;
});

test('a digester’s memory is reused by the next one, but never by a concurrent one', async (t) => {
  const first = new Digester(1);
  const { buffer } = (await first.slot()).bytes;
  await first.close();
  await first.close();
  const [second, third] = [new Digester(1), new Digester(1)];
  t.after(() => Promise.all([second.close(), third.close()]));
  assert.equal((await second.slot()).bytes.buffer, buffer);
  assert.notEqual((await third.slot()).bytes.buffer, buffer);
});

test('a new hashing thread replaces one that died', async (t) => {
  const started = once(process, 'worker');
  const first = new Digester();
  t.after(() => first.close());
  const [worker] = (await started) as [Worker];
  await worker.terminate();
  await assert.rejects(first.digest(), /the thread that computes md5 has ended/);
  const second = new Digester();
  t.after(() => second.close());
  assert.deepEqual(await second.digest(), EMPTY);
});
