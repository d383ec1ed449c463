import assert from 'node:assert/strict';
import { hostname } from 'node:os';
import { test } from 'node:test';
import {
  GearmanError,
  JobExceptionError,
  JobFailedError,
  JobLostError,
} from '@nodepool-builder/gearman-node';
import { ImageGoneError, InvalidResultError, jobFailure } from '../../src/gearman/run-job.ts';
import { isLogged, withReason } from '../../src/protocol/job-failure.ts';

const FUNCTION = 'image-build:debian';

for (const [name, error, expected] of [
  [
    'an exception, with its text',
    new JobExceptionError(FUNCTION, 'H:1', Buffer.from('no spaçe')),
    /^no spaçe$/,
  ],
  [
    'an exception of the Python builder, with the last line of its traceback',
    new JobExceptionError(
      FUNCTION,
      'H:1',
      Buffer.from('Traceback (most recent call last):\n  File "builder.py", line 1\nValueError: no space\n'),
    ),
    /^ValueError: no space$/,
  ],
  ['a failure without a reason', new JobFailedError(FUNCTION, 'H:1'), /image-build:debian/],
  ['a timeout', new GearmanError('job-timeout', 'too long'), /^too long$/],
  ['an invalid result', new InvalidResultError('no external-id'), /^no external-id$/],
] as const) {
  test(`a job has failed after ${name}`, () =>
    assert.match(jobFailure(error, AbortSignal.any([])) ?? '', expected));
}

test('a builder’s reason for a failure replaces the message and names the host', () => {
  const warning = Buffer.from('{"reason": "no space left", "host": "builder1"}');
  for (const error of [
    new JobFailedError(FUNCTION, 'H:1', warning),
    new JobExceptionError(FUNCTION, 'H:1', Buffer.from('no space'), warning),
  ]) {
    assert.equal(jobFailure(withReason(error), AbortSignal.any([])), 'no space left (on builder1)');
  }
});

for (const text of ['careful', '{"reason": 1, "host": "builder1"}', '', '{"reason": "no space left"}']) {
  test(`a warning that is not a reason leaves the error unchanged: ${text}`, () => {
    const error = new JobFailedError(FUNCTION, 'H:1', Buffer.from(text));
    assert.equal(withReason(error), error);
  });
}

for (const [name, error] of [
  ['the loss of a job server', new JobLostError(FUNCTION, 'H:1')],
  ['the stop of the manager', new GearmanError('aborted', 'stopped')],
  ['a failed write to the store', new Error('disk full')],
] as const) {
  test(`a job may still run after ${name}`, () =>
    assert.equal(jobFailure(error, AbortSignal.any([])), undefined));
}

test('a job whose image is gone has failed, whatever the error', () => {
  const signal = AbortSignal.abort(new ImageGoneError('no builder offers it'));
  assert.equal(jobFailure(new GearmanError('aborted', 'stopped'), signal), 'no builder offers it');
});

test('only a failure that this very process has logged counts as logged', () => {
  const { pid } = process;
  const here = { reason: 'no space left', host: hostname(), pid, started: performance.timeOrigin };
  const isLoggedFrom = (failure: object): boolean => {
    const warning = Buffer.from(JSON.stringify(failure));
    return isLogged(withReason(new JobFailedError(FUNCTION, 'H:1', warning)));
  };
  assert.equal(isLoggedFrom(here), true);
  assert.equal(isLoggedFrom({ ...here, host: 'builder2' }), false);
  // Containers on the network of their host have its name, and each of them begins with process 1.
  assert.equal(isLoggedFrom({ ...here, started: performance.timeOrigin - 1 }), false);
  const { started: _, ...earlierRelease } = here;
  assert.equal(isLoggedFrom(earlierRelease), false);
});
