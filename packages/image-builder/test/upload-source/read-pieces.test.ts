import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { InlineDigester } from '../../src/upload-source/inline-digester.ts';
import { readPieces } from '../../src/upload-source/read-pieces.ts';
import { RING_SIZE } from '../../src/upload-source/slot-ring.ts';
import { PIECE } from './image-file.ts';

const SLOTS = RING_SIZE / PIECE;

/** A file of endless size that tells how often it was read. */
class CountedFile {
  readonly size = Number.MAX_SAFE_INTEGER;
  reads = 0;

  async read(bytes: Buffer): Promise<Buffer> {
    this.reads += 1;
    return bytes.fill(this.reads);
  }

  async check(): Promise<void> {}
}

/** Never done with what it got. */
class StuckDigester extends InlineDigester {
  override update(): Promise<void> {
    return new Promise(() => {});
  }
}

test('one piece is read ahead of a consumer that does not go on', async (t) => {
  const file = new CountedFile();
  const pieces = readPieces(file, new InlineDigester([]));
  t.after(() => pieces.return());
  const { value: first } = await pieces.next();
  for (let turn = 0; turn < 100; turn += 1) await setImmediate();
  assert.equal(file.reads, 2);
  assert.deepEqual([first?.[0], first?.at(-1)], [1, 1], 'the memory of the piece was filled anew');
});

test('a digester that does not go on stops the reading when the memory is used up', async () => {
  const file = new CountedFile();
  const pieces = readPieces(file, new StuckDigester([]));
  for (let piece = 1; piece < SLOTS; piece += 1) await pieces.next();
  let further = false;
  void (async () => {
    await pieces.next();
    await pieces.next();
    further = true;
  })();
  for (let turn = 0; turn < 100; turn += 1) await setImmediate();
  assert.equal(file.reads, SLOTS);
  assert.equal(further, false);
});

test('a consumer that breaks off waits for the read under way', async () => {
  const file = new CountedFile();
  const reading = Promise.withResolvers<void>();
  const read = file.read.bind(file);
  file.read = async (bytes) => {
    if (file.reads === 1) await reading.promise;
    return await read(bytes);
  };
  const pieces = readPieces(file, new InlineDigester([]));
  await pieces.next();
  let ended = false;
  const end = (async () => {
    await pieces.return();
    ended = true;
  })();
  await setImmediate();
  assert.equal(ended, false);
  reading.resolve();
  await end;
});

test('a read ahead that fails is the error of its piece, however late that is asked for', async () => {
  const file = new CountedFile();
  const fault = new Error('EIO');
  const read = file.read.bind(file);
  file.read = (bytes) => (file.reads === 1 ? Promise.reject(fault) : read(bytes));
  const pieces = readPieces(file, new InlineDigester([]));
  await pieces.next();
  await setImmediate(); // a rejection that nobody handles would be told now
  await assert.rejects(pieces.next(), fault);
});
