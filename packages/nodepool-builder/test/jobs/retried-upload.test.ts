import assert from 'node:assert/strict';
import { it, mock, type TestContext } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { ImageError } from '@nodepool-builder/image-builder';
import { type RetryOptions, retriedUpload } from '../../src/jobs/retried-upload.ts';
import { RecordingLogger } from './recording-logger.ts';

const BUSY = Object.assign(new Error('503'), { retriable: true });
const REFUSED = Object.assign(new Error('403'), { retriable: false });

interface Run {
  readonly tries: number;
  readonly outcome: unknown;
  readonly logger: RecordingLogger;
}

/** Fails with each of `failures` in turn, then succeeds; time passes as fast as it can. */
async function run(
  t: TestContext,
  failures: readonly Error[],
  options: Partial<RetryOptions> = {},
): Promise<Run> {
  t.mock.timers.enable({ apis: ['setTimeout', 'Date'] });
  const logger = new RecordingLogger();
  const upload = mock.fn(async () => {
    const failure = failures[upload.mock.callCount()];
    if (failure !== undefined) throw failure;
    return await Promise.resolve('uuid');
  });
  const all = { signal: new AbortController().signal, deadline: Infinity, logger, ...options };
  let outcome: unknown;
  const ended = retriedUpload(upload, all).then(
    (result) => (outcome = result),
    (error: unknown) => (outcome = error),
  );
  while (outcome === undefined) {
    await setImmediate();
    t.mock.timers.runAll();
  }
  await ended;
  return { tries: upload.mock.callCount(), outcome, logger };
}

it('a failure that passes by itself does not get out', async (t) => {
  const { tries, outcome, logger } = await run(t, [BUSY, BUSY]);
  assert.equal(outcome, 'uuid');
  assert.equal(tries, 3);
  assert.deepEqual(logger.lines, [
    'warn 503; the upload is tried again in 5 s',
    'warn 503; the upload is tried again in 10 s',
  ]);
});

it('one that does not pass gets out after ten minutes', async (t) => {
  const { outcome, logger } = await run(t, Array<Error>(50).fill(BUSY));
  assert.equal(outcome, BUSY);
  const waited = logger.lines.map((line) => Number(/in (\d+) s/.exec(line)?.[1]));
  assert.deepEqual(waited, [5, 10, 20, 40, 60, 60, 60, 60, 60, 60, 60, 60]);
});

it('one that would only pass after the time of the upload is over gets out at once', async (t) => {
  const { tries, outcome } = await run(t, [BUSY], { deadline: 4_999 });
  assert.equal(outcome, BUSY);
  assert.equal(tries, 1);
});

it('a refusal gets out at once', async (t) => {
  const { tries, outcome } = await run(t, [REFUSED]);
  assert.equal(outcome, REFUSED);
  assert.equal(tries, 1);
});

it('what is wrong with the image or the disk here does too', async (t) => {
  const full = new ImageError('disk-full', 'no space');
  assert.equal((await run(t, [full])).outcome, full);
});

it('an aborted upload does not wait', async () => {
  const controller = new AbortController();
  const logger = new RecordingLogger();
  const upload = (): Promise<never> => {
    process.nextTick(() => controller.abort());
    return Promise.reject(BUSY);
  };
  const options = { signal: controller.signal, deadline: Infinity, logger };
  await assert.rejects(retriedUpload(upload, options), BUSY);
});
