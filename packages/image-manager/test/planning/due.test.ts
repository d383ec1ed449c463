import { equal } from 'node:assert/strict';
import { test } from 'node:test';
import { durationInWords } from '../../src/planning/due.ts';

for (const [seconds, words] of [
  [0, '0 seconds'],
  [1, '1 second'],
  [119, '119 seconds'],
  [120, '2 minutes'],
  [86_400, '24 hours'],
  [90_000, '25 hours'],
  [172_799, '47 hours'],
  [172_800, '2 days'],
] as const) {
  test(`a duration of ${seconds} seconds is written as ${words}`, () =>
    equal(durationInWords(seconds), words));
}
