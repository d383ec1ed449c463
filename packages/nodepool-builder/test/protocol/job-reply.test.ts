import assert from 'node:assert/strict';
import { hostname } from 'node:os';
import { describe, it } from 'node:test';
import { WorkFailError } from '@nodepool-builder/gearman-node';
import { ImageError, type ImageErrorCode, type Logger } from '@nodepool-builder/image-builder';
import { JobError, reportProgress, settleJob } from '../../src/protocol/job-reply.ts';

function recorder(): { logger: Logger; lines: string[] } {
  const lines: string[] = [];
  const write = (message: string): unknown => lines.push(message);
  return { lines, logger: { debug: write, info: write, warn: write, error: write } };
}

interface RecordedJob {
  readonly handle: string;
  readonly payload: Buffer;
  readonly warnings: string[];
  sendWarning(data: string | Uint8Array): Promise<void>;
}

function job(argument = ''): RecordedJob {
  const warnings: string[] = [];
  const sendWarning = async (data: string | Uint8Array): Promise<void> => void warnings.push(String(data));
  return { handle: 'H:1', payload: Buffer.from(argument), warnings, sendWarning };
}

async function outcomeOf(error: Error): Promise<unknown> {
  try {
    return await settleJob({ action: 'build of debian', logger: recorder().logger }, job(), () =>
      Promise.reject(error),
    );
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
    it(`a job that fails with ${code} ends with WORK_FAIL`, async () => {
      const error = await outcomeOf(new ImageError(code, 'the reason'));
      assert.ok(error instanceof WorkFailError);
      assert.equal(error.message, 'the reason');
    });
  }

  const exceptions: readonly ImageErrorCode[] = ['invalid-image-id', 'invalid-configuration'];
  for (const code of exceptions) {
    it(`a job that fails with ${code} ends with WORK_EXCEPTION`, async () => {
      const error = await outcomeOf(new ImageError(code, 'the reason'));
      assert.ok(!(error instanceof WorkFailError));
    });
  }

  it('a failed job is logged with its reason, which WORK_FAIL cannot carry', async () => {
    const { logger, lines } = recorder();
    await assert.rejects(
      settleJob({ action: 'build of debian', logger }, job(), () =>
        Promise.reject(new ImageError('disk-full', 'no space')),
      ),
    );
    assert.deepEqual(lines, ['build of debian failed: no space (job H:1)']);
  });
});

describe('the reason of a failed job', () => {
  const failing = async (argument: string, error: Error): Promise<string[]> => {
    const asked = job(argument);
    await assert.rejects(
      settleJob({ action: 'build', logger: recorder().logger }, asked, () => Promise.reject(error)),
    );
    return asked.warnings;
  };

  it('a failed job’s reason is sent to a client that requests it, before WORK_FAIL or WORK_EXCEPTION', async () => {
    const errors = [new ImageError('disk-full', 'no space'), new JobError('no such provider')];
    for (const error of errors) {
      const [warning = '', ...others] = await failing('{"image-id": "1", "reason": true}', error);
      assert.deepEqual(others, []);
      const { timeOrigin: started } = performance;
      assert.deepEqual(JSON.parse(warning), {
        reason: error.message,
        host: hostname(),
        pid: process.pid,
        started,
      });
    }
  });

  for (const argument of ['', '{"image-id": "1"}', '{"reason": "true"}', 'null', '[true]']) {
    it(`a failed job’s reason is not sent to a client with the argument ${argument}, which would take it as a result`, async () => {
      assert.deepEqual(await failing(argument, new ImageError('disk-full', 'no space')), []);
    });
  }
});

describe('the progress of a job', () => {
  it('a job’s progress is sent once for each change in whole percent', () => {
    const sent: [number, number][] = [];
    const report = reportProgress({
      sendStatus: (numerator, denominator) => sent.push([numerator, denominator]),
    });
    for (const done of [0, 1, 2, 250, 251, 10, 1000, 2000]) report({ done, total: 1000 });
    assert.deepEqual(sent, [
      [0, 100],
      [25, 100],
      [1, 100],
      [100, 100],
    ]);
  });

  it('a job’s progress is 0 without a total', () => {
    const sent: number[] = [];
    reportProgress({ sendStatus: (numerator) => sent.push(numerator) })({ done: 0, total: 0 });
    assert.deepEqual(sent, [0]);
  });
});
