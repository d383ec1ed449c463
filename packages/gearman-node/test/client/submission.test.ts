import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type SubmitOptions, submissionOf } from '../../src/client/submission.ts';

test('a job’s background flag and priority determine its submission packet', () => {
  for (const [options, packet] of [
    [{}, 'SUBMIT_JOB'],
    [{ priority: 'high' }, 'SUBMIT_JOB_HIGH'],
    [{ priority: 'low' }, 'SUBMIT_JOB_LOW'],
    [{ background: true }, 'SUBMIT_JOB_BG'],
    [{ background: true, priority: 'high' }, 'SUBMIT_JOB_HIGH_BG'],
    [{ background: true, priority: 'low' }, 'SUBMIT_JOB_LOW_BG'],
  ] as const) {
    assert.deepEqual(submissionOf('f', 'payload', { ...options, unique: 'key' }), {
      packet,
      arguments: ['f', 'key', 'payload'],
    });
  }
});

test('startAt of a submission is rounded up to whole seconds', () => {
  assert.deepEqual(submissionOf('f', 'payload', { background: true, startAt: new Date(1_500_000_000_001) }), {
    packet: 'SUBMIT_JOB_EPOCH',
    arguments: ['f', '', 1_500_000_001, 'payload'],
  });
});

test('a reducer is sent with an aggregator, which is empty by default', () => {
  assert.deepEqual(submissionOf('f', 'payload', { reducer: 'r' }), {
    packet: 'SUBMIT_REDUCE_JOB',
    arguments: ['f', '', 'r', '', 'payload'],
  });
  assert.deepEqual(
    submissionOf('f', '', { unique: 'key', reducer: 'r', aggregator: 'a', background: true }),
    {
      packet: 'SUBMIT_REDUCE_JOB_BACKGROUND',
      arguments: ['f', 'key', 'r', 'a', ''],
    },
  );
});

const INVALID: Readonly<Record<string, SubmitOptions>> = {
  'a key of 64 bytes': { unique: 'x'.repeat(64) },
  'startAt in the foreground': { startAt: new Date() },
  'startAt with a priority': { startAt: new Date(), background: true, priority: 'high' },
  'startAt with a reducer': { startAt: new Date(), background: true, reducer: 'r' },
  'an invalid date': { startAt: new Date('soon'), background: true },
  'a date before 1970': { startAt: new Date(-1000), background: true },
  'a reducer with a priority': { reducer: 'r', priority: 'low' },
  'a reducer without a name': { reducer: '' },
  'a reducer with a NUL': { reducer: 'a\0b' },
  'an aggregator without a reducer': { aggregator: 'a' },
  'an aggregator with a NUL': { reducer: 'r', aggregator: 'a\0b' },
};

for (const [what, options] of Object.entries(INVALID)) {
  test(`a submission with ${what} is rejected before a packet is sent`, () => {
    assert.throws(() => submissionOf('f', '', options), { code: 'invalid-argument' });
  });
}
