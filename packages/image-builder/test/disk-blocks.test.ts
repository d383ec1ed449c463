// Not a unit test: it runs qemu-img.
import assert from 'node:assert/strict';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { temporaryDirectory } from '../../../test/fixtures/temporary-directory.ts';
import { sendBlocks } from '../src/disk-blocks.ts';

const BLOCK = 512 * 1024;
const NEVER = new AbortController().signal;

/** Creates a disk of 64.5 blocks with data in blocks 3, 4 and 64, and written zeros in block 7. */
async function disk(t: TestContext): Promise<string> {
  const path = join(await temporaryDirectory(t), 'disk.raw');
  const file = await open(path, 'w');
  await file.truncate(64.5 * BLOCK);
  await file.write(Buffer.alloc(BLOCK + 4096, 'a'), 0, undefined, 3 * BLOCK);
  await file.write(Buffer.alloc(BLOCK), 0, undefined, 7 * BLOCK);
  await file.write(Buffer.from('end'), 0, undefined, 64 * BLOCK);
  await file.close();
  return path;
}

test('a disk’s blocks with data are sent, the last one padded with zeros', async (t) => {
  const sent = new Map<number, Buffer>();
  const percent: number[] = [];
  const count = await sendBlocks(await disk(t), {
    blockSize: BLOCK,
    concurrency: 2,
    signal: NEVER,
    send: async ({ index, bytes }) => {
      sent.set(index, Buffer.from(bytes));
    },
    onProgress: ({ done, total }) => percent.push(done / total),
  });
  assert.equal(count, 3);
  assert.deepEqual(new Set(sent.keys()), new Set([3, 4, 64]));
  const expected = new Map([
    [3, Buffer.alloc(BLOCK, 'a')],
    [4, Buffer.concat([Buffer.alloc(4096, 'a'), Buffer.alloc(BLOCK - 4096)])],
    [64, Buffer.concat([Buffer.from('end'), Buffer.alloc(BLOCK - 3)])],
  ]);
  for (const [index, bytes] of expected) assert.ok(sent.get(index)?.equals(bytes), `block ${index}`);
  assert.equal(percent.at(-1), 1);
});

test('a disk’s known blocks are skipped, and zeros are sent over other data', async (t) => {
  const sent: number[] = [];
  await sendBlocks(await disk(t), {
    blockSize: BLOCK,
    concurrency: 1,
    signal: NEVER,
    isSkipped: (index) => index === 3,
    also: [0, 7, 60],
    send: async ({ index, bytes }) => {
      sent.push(index);
      assert.equal(bytes.includes('a'), index === 4);
    },
  });
  assert.deepEqual(sent, [0, 4, 7, 60, 64]);
});

test('an error in sending a disk’s blocks stops further sends, and waits for running ones', async (t) => {
  let running = 0;
  const sent: number[] = [];
  const work = sendBlocks(await disk(t), {
    blockSize: 4096,
    concurrency: 3,
    signal: NEVER,
    send: async ({ index }) => {
      running++;
      const count = sent.push(index);
      await new Promise(setImmediate);
      running--;
      if (count === 5) throw new Error(`block ${index} is refused`);
    },
  });
  await assert.rejects(work, /is refused/);
  assert.equal(running, 0);
  assert.ok(sent.length < 10, `${sent.length} blocks`);
});

test('an abort ends the sending of a disk’s blocks with its reason', async (t) => {
  const stop = new AbortController();
  const work = sendBlocks(await disk(t), {
    blockSize: 4096,
    concurrency: 2,
    signal: stop.signal,
    send: async () => stop.abort(new Error('cancelled')),
  });
  await assert.rejects(work, /cancelled/);
});
