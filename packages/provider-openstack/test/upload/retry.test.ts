import { deepEqual, equal, rejects } from 'node:assert/strict';
import { describe, it } from 'node:test';
import { CloudError, type CloudErrorCode } from '@nodepool-builder/image-builder/plugin';
import { FinalError, type RetryOptions, retry } from '../../src/upload/retry.ts';
import { failsWith } from '../fixtures/fails-with.ts';
import { SILENT } from '../fixtures/silent-logger.ts';

const OPTIONS: RetryOptions = {
  name: 'upload',
  attempts: Number.POSITIVE_INFINITY,
  delay: 0,
  logger: SILENT,
  signal: new AbortController().signal,
};

/** Throws these errors in turn, and then returns the number of the attempt. */
function failing(...errors: readonly Error[]): (attempt: number) => Promise<number> {
  return async (attempt) => {
    const error = errors[attempt - 1];
    if (error !== undefined) throw error;
    return attempt;
  };
}

function errorOf(code: CloudErrorCode, status?: number): CloudError {
  return new CloudError(code, code, { status });
}

describe('an upload that fails', () => {
  it('a failed upload to a cloud is retried after a transient error', async () => {
    equal(await retry(failing(errorOf('service-unavailable'), errorOf('connection-failed')), OPTIONS), 3);
    await rejects(retry(failing(errorOf('forbidden')), OPTIONS), failsWith('forbidden'));
  });

  it('a failed upload to a cloud is retried once after a conflict, which may concern the attempt’s image', async () => {
    equal(await retry(failing(errorOf('conflict', 409)), OPTIONS), 2);
    equal(await retry(failing(errorOf('not-found', 410)), OPTIONS), 2);
    const tries: number[] = [];
    const always = async (attempt: number): Promise<never> => {
      tries.push(attempt);
      throw errorOf('conflict', 409);
    };
    await rejects(retry(always, OPTIONS), failsWith('conflict'));
    deepEqual(tries, [1, 2]);
  });

  it('a failed upload to a cloud is not retried after a final failure', async () => {
    const conflict = errorOf('conflict', 409);
    await rejects(
      retry(() => Promise.reject(new FinalError(conflict)), OPTIONS),
      conflict,
    );
  });

  it('a failed upload to a cloud is not retried after its time limit', async () => {
    const warnings: string[] = [];
    const logger = { ...SILENT, warn: (line: string) => void warnings.push(line) };
    const options = { ...OPTIONS, delay: 1, limit: 0.5, logger };
    await rejects(retry(failing(errorOf('service-unavailable')), options), failsWith('service-unavailable'));
    deepEqual(warnings, [
      'upload: attempt 1 failed; no retry, because 0.5 s have passed since the first failure',
    ]);
    await rejects(
      retry(failing(errorOf('service-unavailable')), { ...OPTIONS, limit: 0 }),
      failsWith('service-unavailable'),
    );
  });
});
