import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  ConnectionError,
  GEARMAN_ERRORS,
  GearmanError,
  JobExceptionError,
  JobFailedError,
  JobLostError,
  ProtocolError,
  ServerError,
  WorkFailError,
} from '../src/errors.ts';

const cause = new Error('why');

const ERRORS: readonly (readonly [error: GearmanError, name: string, code: string])[] = [
  [new ProtocolError('bad-magic', 'm'), 'ProtocolError', 'bad-magic'],
  [new ConnectionError('connect-failed', 'm'), 'ConnectionError', 'connect-failed'],
  [new ServerError('QUEUE_ERROR', 'full'), 'ServerError', 'server-error'],
  [new JobFailedError('f', 'H:x:1'), 'JobFailedError', 'job-failed'],
  [new JobExceptionError('f', 'H:x:1', Buffer.from('boom')), 'JobExceptionError', 'job-exception'],
  [new JobLostError('f', 'H:x:1'), 'JobLostError', 'job-lost'],
  [new WorkFailError('no'), 'WorkFailError', 'job-failed'],
];

test('each error class extends GearmanError and has a name and a code', () => {
  for (const [error, name, code] of ERRORS) {
    assert.ok(error instanceof GearmanError);
    assert.deepEqual([error.name, error.code], [name, code]);
  }
});

test('an error’s code determines whether it is retriable', () => {
  for (const [error, , code] of ERRORS) {
    assert.equal(error.retriable, GEARMAN_ERRORS[code as keyof typeof GEARMAN_ERRORS].retriable);
  }
  assert.equal(new JobLostError('f', undefined).retriable, true);
  assert.equal(new ProtocolError('bad-magic', 'm').retriable, false);
});

test('a GearmanError keeps its cause', () => {
  assert.equal(new GearmanError('closed', 'm', { cause }).cause, cause);
  assert.equal(new JobLostError('f', undefined, { cause }).cause, cause);
  assert.equal(new WorkFailError('m', { cause }).cause, cause);
});

test('the error of a job names the job and its function', () => {
  assert.match(new JobLostError('f', undefined).message, /a job of f/);
  assert.match(new JobLostError('f', 'H:x:1').message, /job H:x:1 of f/);
  assert.match(new JobExceptionError('f', 'H:x:1', Buffer.from('boom')).message, /H:x:1 of f .*: boom/);
  assert.match(new ServerError('QUEUE_ERROR', 'full').message, /QUEUE_ERROR: full/);
});
