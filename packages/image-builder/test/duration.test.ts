import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseDuration } from '../src/duration.ts';

test('a duration is a whole number with its unit', () => {
  const texts = ['0s', '90s', '30m', '12h', '7d', '2w'];
  assert.deepEqual(texts.map(parseDuration), [0, 90_000, 1_800_000, 43_200_000, 604_800_000, 1_209_600_000]);
});

test('a text without a whole number and a unit is not a duration', () => {
  for (const text of ['', '7', 'd', '-1d', '1.5h', '7 d', '7D', '1d12h', '9999999s']) {
    assert.equal(parseDuration(text), undefined, text);
  }
});
