import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  GearmanError,
  JobExceptionError,
  JobFailedError,
  JobLostError,
} from '@nodepool-builder/gearman-node';
import { jobFailure, UnusableResultError } from '../../src/acts/job-failure.ts';
import { Hopeless } from '../../src/gearman/hopeless.ts';

const FUNCTION = 'image-build:debian';

for (const [name, error, expected] of [
  ['an exception: its text', new JobExceptionError(FUNCTION, 'H:1', Buffer.from('no spaçe')), /^no spaçe$/],
  ['a failure without a reason', new JobFailedError(FUNCTION, 'H:1'), /image-build:debian/],
  ['a time limit', new GearmanError('job-timeout', 'too long'), /^too long$/],
  ['a result that is none', new UnusableResultError('what is this'), /^what is this$/],
] as const) {
  test(`it has failed: ${name}`, () => assert.match(jobFailure(error, AbortSignal.any([])) ?? '', expected));
}

for (const [name, error] of [
  ['a job server that was lost', new JobLostError(FUNCTION, 'H:1')],
  ['a manager that is stopped', new GearmanError('aborted', 'stopped')],
  ['a store that cannot be written', new Error('disk full')],
] as const) {
  test(`it may still run: ${name}`, () => assert.equal(jobFailure(error, AbortSignal.any([])), undefined));
}

test('what is given up as hopeless has failed, whatever was thrown', () => {
  const signal = AbortSignal.abort(new Hopeless('nobody offers it'));
  assert.equal(jobFailure(new GearmanError('aborted', 'stopped'), signal), 'nobody offers it');
});
