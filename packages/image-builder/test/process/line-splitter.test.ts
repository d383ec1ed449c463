import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LineSplitter } from '../../src/process/line-splitter.ts';

/** Returns the lines of `text` when it arrives in chunks of `size` bytes. */
function split(text: string, size: number): string[] {
  const splitter = new LineSplitter();
  const bytes = Buffer.from(text);
  const lines: string[] = [];
  for (let start = 0; start < bytes.length; start += size) {
    lines.push(...splitter.push(bytes.subarray(start, start + size)));
  }
  return [...lines, ...splitter.end()];
}

const TEXT = 'one\ntwo\r\n\nprogress 1\rprogress 2\rümlaut €\nlast';
const LINES = ['one', 'two', '', 'progress 1', 'progress 2', 'ümlaut €', 'last'];

test('output lines do not depend on the size of chunks', () => {
  for (let size = 1; size <= Buffer.byteLength(TEXT); size += 1)
    assert.deepEqual(split(TEXT, size), LINES, `${size}`);
});

test('a trailing line end begins no new output line', () => {
  for (const text of ['one\n', 'one\r', 'one\r\n'])
    assert.deepEqual(split(text, 2), ['one'], JSON.stringify(text));
});

test('a long output without line ends is split into lines', () => {
  const lines = split('x'.repeat(200_000), 8_192);
  assert.ok(lines.length > 1);
  assert.equal(lines.join('').length, 200_000);
});
