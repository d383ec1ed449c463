import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { test } from 'node:test';
import { Segments } from '../../src/upload/segments.ts';

const DATA = randomBytes(1000);

/** The data in pieces that fit no segment, and how often it was begun. */
function source(): { segments: Segments; begun: () => number } {
  let begun = 0;
  const open = (): Readable => {
    begun += 1;
    return Readable.from([DATA.subarray(0, 7), DATA.subarray(7, 700), DATA.subarray(700)]);
  };
  return { segments: new Segments(open), begun: () => begun };
}

test('segments in their order are one reading', async () => {
  const { segments, begun } = source();
  for (let start = 0; start < DATA.length; start += 300) {
    const end = Math.min(start + 300, DATA.length);
    assert.deepEqual(await buffer(segments.read(start, end)), DATA.subarray(start, end));
  }
  assert.equal(begun(), 1);
});

test('a segment can be read again, half read or whole, and those after it too', async () => {
  const { segments, begun } = source();
  assert.deepEqual(await buffer(segments.read(0, 300)), DATA.subarray(0, 300));
  for await (const piece of segments.read(300, 710)) {
    assert.deepEqual(piece, DATA.subarray(300, 700));
    break;
  }
  assert.deepEqual(await buffer(segments.read(300, 710)), DATA.subarray(300, 710));
  assert.equal(begun(), 2);
  assert.deepEqual(await buffer(segments.read(300, 710)), DATA.subarray(300, 710));
  assert.deepEqual(await buffer(segments.read(710, 1000)), DATA.subarray(710));
  assert.equal(begun(), 3);
});

test('a file that is too short is given as it is', async () => {
  const { segments } = source();
  assert.deepEqual(await buffer(segments.read(900, 2000)), DATA.subarray(900));
});
