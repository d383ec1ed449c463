import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RecordingLogger } from '../../../../test/fixtures/recording-logger.ts';
import { RetryTimes, Tasks } from '../../src/tasks/tasks.ts';
import { Hold } from '../hold.ts';

function setUp() {
  const timing = { retryDelay: 60, maxRetryDelay: 3600, orphanScanInterval: 600, absenceTimeout: 1800 };
  const configuration = () => ({ diskimages: [], providers: [], timing });
  const retries = new RetryTimes({ configuration, elapsed: () => 1000 });
  const logger = new RecordingLogger();
  let endings = 0;
  const next: (() => void)[] = [];
  const ended = (): void => {
    endings += 1;
    for (const resolve of next.splice(0)) resolve();
  };
  const tasks = new Tasks({ retries, logger, ended });
  const anEnd = (): Promise<void> => new Promise((resolve) => next.push(resolve));
  return { tasks, retries, logger, anEnd, endings: () => endings };
}

test('a task’s id is listed until the task ends', async () => {
  const { tasks, anEnd } = setUp();
  const hold = new Hold();
  const end = anEnd();
  tasks.start('a', 'delete build', (signal) => hold.wait(signal));
  assert.deepEqual([...tasks.ids], ['a']);
  hold.release();
  await end;
  assert.deepEqual([...tasks.ids], []);
});

test('a task’s failure is logged with the pause before the next attempt, which a success resets', async () => {
  const { tasks, retries, logger, anEnd } = setUp();
  let end = anEnd();
  tasks.start('a', 'delete build', async () => {
    throw new Error('it is in use');
  });
  await end;
  assert.deepEqual(logger.lines, ['warn cannot delete build a: it is in use; retrying in 60 s']);
  assert.equal(retries.all.get('a'), 61_000);
  end = anEnd();
  tasks.start('a', 'delete build', async () => {});
  await end;
  assert.equal(retries.all.size, 0);
});

test('an aborted task stops with a reason while others run', async () => {
  const { tasks, anEnd } = setUp();
  const end = anEnd();
  const reasons: unknown[] = [];
  const work = (name: string) => (signal: AbortSignal) =>
    new Hold().wait(signal).catch((error: unknown) => {
      reasons.push(name, error);
    });
  tasks.start('a', 'delete build', work('a'));
  tasks.start('b', 'delete build', work('b'));
  const reason = new Error('image gone');
  tasks.abort('a', reason);
  await end;
  assert.deepEqual(reasons, ['a', reason]);
  assert.deepEqual([...tasks.ids], ['b']);
  await tasks.stop(reason);
});

test('stopping waits for all tasks, logs nothing, and prevents new tasks', async () => {
  const { tasks, logger, endings } = setUp();
  tasks.start('a', 'delete build', (signal) => new Hold().wait(signal));
  tasks.start('b', 'delete build', (signal) => new Hold().wait(signal));
  await tasks.stop(new Error('stopped'));
  assert.equal(endings(), 2);
  tasks.start('c', 'delete build', () => assert.fail('the task started'));
  assert.deepEqual([...tasks.ids], []);
  assert.deepEqual(logger.lines, []);
});
