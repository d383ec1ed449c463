// Not a unit test: it takes seconds.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RecordingLogger } from '../../../../test/fixtures/recording-logger.ts';
import { withCode } from '../../../../test/fixtures/with-code.ts';
import { Retries, TransientError } from '../../src/download/retries.ts';

const FAILURE = new TransientError('http://h/a: the server responded with 503');

const { signal } = new AbortController();

test('new data between two failures restarts the count of retries', async () => {
  const retries = new Retries({ attempts: 3, firstDelay: 0, maxDelay: 0, maxRetryAfter: 0 }, undefined);
  for (const progress of [0, 0, 1, 1, 2]) await retries.pause(FAILURE, progress, signal);
  await retries.pause(FAILURE, 2, signal);
  await assert.rejects(
    retries.pause(FAILURE, 2, signal),
    withCode('download-failed', /503; all 3 attempts in a row failed/),
  );
});

test('each delay before a retry is up to twice as long as the one before', async (t) => {
  t.mock.method(Math, 'random', () => 0);
  const logger = new RecordingLogger();
  const retries = new Retries({ attempts: 9, firstDelay: 0.1, maxDelay: 0.5, maxRetryAfter: 0.5 }, logger);
  for (const expected of ['0.1', '0.2', '0.4', '0.5']) {
    await retries.pause(FAILURE, 0, signal);
    assert.match(logger.lines.at(-1) ?? '', new RegExp(`503; retrying in ${expected} s`));
  }
});

test('a delay before a retry ends when the signal aborts', async () => {
  const stop = new AbortController();
  const retries = new Retries({ attempts: 3, firstDelay: 60, maxDelay: 60, maxRetryAfter: 60 }, undefined);
  const paused = retries.pause(FAILURE, 0, stop.signal);
  stop.abort(new Error('enough'));
  await assert.rejects(paused, (error) => error === stop.signal.reason);
});
