import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RecordingLogger } from '../../../image-builder/test/recording-logger.ts';
import { Acts } from '../../src/acts/acts.ts';
import { RetryTimes } from '../../src/retry-times.ts';
import { Hold } from '../hold.ts';

function setUp() {
  const retries = new RetryTimes(() => ({
    retryDelay: 60,
    longestRetryDelay: 3600,
    leakInterval: 600,
    absenceLimit: 1800,
  }));
  const logger = new RecordingLogger();
  let endings = 0;
  const next: (() => void)[] = [];
  const ended = (): void => {
    endings += 1;
    for (const resolve of next.splice(0)) resolve();
  };
  const acts = new Acts({ retries, logger, elapsed: () => 1000, ended });
  const anEnd = (): Promise<void> => new Promise((resolve) => next.push(resolve));
  return { acts, retries, logger, anEnd, endings: () => endings };
}

test('an act is under way until it has ended', async () => {
  const { acts, anEnd } = setUp();
  const hold = new Hold();
  const end = anEnd();
  acts.begin('a', (signal) => hold.wait(signal));
  assert.deepEqual([...acts.ids], ['a']);
  hold.release();
  await end;
  assert.deepEqual([...acts.ids], []);
});

test('a failure is told, with the time of the next try; a success forgets it', async () => {
  const { acts, retries, logger, anEnd } = setUp();
  let end = anEnd();
  acts.begin('a', async () => {
    throw new Error('it is in use');
  });
  await end;
  assert.deepEqual(logger.lines, ['warn a: it is in use; trying again in 60 s']);
  assert.equal(retries.all.get('a'), 61_000);
  end = anEnd();
  acts.begin('a', async () => {});
  await end;
  assert.equal(retries.all.size, 0);
});

test('one can be aborted alone, with a reason', async () => {
  const { acts, anEnd } = setUp();
  const end = anEnd();
  const reasons: unknown[] = [];
  const work = (name: string) => (signal: AbortSignal) =>
    new Hold().wait(signal).catch((error: unknown) => {
      reasons.push(name, error);
    });
  acts.begin('a', work('a'));
  acts.begin('b', work('b'));
  const reason = new Error('hopeless');
  acts.abort('a', reason);
  await end;
  assert.deepEqual(reasons, ['a', reason]);
  assert.deepEqual([...acts.ids], ['b']);
  await acts.stop(reason);
});

test('stopping waits for all, says nothing, and lets nothing begin any more', async () => {
  const { acts, logger, endings } = setUp();
  acts.begin('a', (signal) => new Hold().wait(signal));
  acts.begin('b', (signal) => new Hold().wait(signal));
  await acts.stop(new Error('enough'));
  assert.equal(endings(), 2);
  acts.begin('c', () => assert.fail('it was begun'));
  assert.deepEqual([...acts.ids], []);
  assert.deepEqual(logger.lines, []);
});
