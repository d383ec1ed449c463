import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { JobFailure } from '@nodepool-builder/gearman-node';
import { ImageError, type ImageErrorCode, type Logger } from '@nodepool-builder/image-builder';
import { settleJob } from '../../src/jobs/job-outcome.ts';

function recorder(): { logger: Logger; lines: string[] } {
  const lines: string[] = [];
  const write = (message: string): unknown => lines.push(message);
  return { lines, logger: { debug: write, info: write, warn: write, error: write } };
}

async function outcomeOf(error: Error): Promise<unknown> {
  try {
    return await settleJob('build of debian', recorder().logger, () => Promise.reject(error));
  } catch (outcome) {
    return outcome;
  }
}

describe('the outcome of a job', () => {
  const failures: readonly ImageErrorCode[] = [
    'command-failed',
    'command-not-found',
    'validation-failed',
    'format-unavailable',
    'disk-full',
  ];
  for (const code of failures) {
    it(`is WORK_FAIL for ${code}: it could not be done`, async () => {
      const error = await outcomeOf(new ImageError(code, 'the reason'));
      assert.ok(error instanceof JobFailure);
      assert.equal(error.message, 'the reason');
    });
  }

  const exceptions: readonly ImageErrorCode[] = ['invalid-image-id', 'invalid-configuration'];
  for (const code of exceptions) {
    it(`is WORK_EXCEPTION for ${code}: it makes no sense`, async () => {
      const error = await outcomeOf(new ImageError(code, 'the reason'));
      assert.ok(!(error instanceof JobFailure));
    });
  }

  it('is logged with its reason, which WORK_FAIL cannot carry', async () => {
    const { logger, lines } = recorder();
    await assert.rejects(
      settleJob('build of debian', logger, () => Promise.reject(new ImageError('disk-full', 'no space'))),
    );
    assert.deepEqual(lines, ['build of debian: failed: no space']);
  });
});
