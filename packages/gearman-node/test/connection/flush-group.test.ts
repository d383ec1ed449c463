import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FlushGroup } from '../../src/connection/flush-group.ts';

test('packets are flushed at the end of the chunk that caused them', () => {
  const group = new FlushGroup();
  const log: string[] = [];
  group.read((chunk) => {
    for (const name of ['a', 'b']) group.schedule(() => log.push(`flush ${name}`));
    log.push(`read ${chunk.toString()}`);
  }, Buffer.from('chunk'));
  assert.deepEqual(log, ['read chunk', 'flush a', 'flush b']);
});

test('packets are flushed after the callback when no chunk is read', async () => {
  const group = new FlushGroup();
  const log: string[] = [];
  group.schedule(() => log.push('flush'));
  log.push('callback');
  await new Promise(setImmediate);
  assert.deepEqual(log, ['callback', 'flush']);
});
