import assert from 'node:assert/strict';
import { test } from 'node:test';
import { diskMeter } from '../../src/web/markup.ts';

test('the bar of a disk that is almost full is above its high mark, where browsers show it in red', () => {
  const [, low = 0, high = 0, value = 0] = (
    /optimum="0" low="(\d+)" high="(\d+)" value="(\d+)"/.exec(diskMeter(6000, 29, 'Disk of west').text) ?? []
  ).map(Number);
  assert.ok(low < high && high < value, `${low}, ${high}, ${value}`);
});
