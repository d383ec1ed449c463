import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { JobTimers } from '../../src/server/job-timers.ts';
import type { ServerJob } from '../../src/server/queue-model.ts';
import type { ServerConnection } from '../../src/server/server-connection.ts';

const job = {} as ServerJob<ServerConnection>;
/** Max delay of Node's timers. */
const MAX_TIMER_DELAY = 2 ** 31 - 1;

test('a job timer runs its action once, after the delay', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const action = mock.fn();
  new JobTimers().start(job, 1000, action);
  t.mock.timers.tick(999);
  assert.equal(action.mock.callCount(), 0);
  t.mock.timers.tick(1);
  t.mock.timers.tick(10_000);
  assert.equal(action.mock.callCount(), 1);
});

test('a job timer’s delay may exceed the limit of Node’s timers', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const action = mock.fn();
  new JobTimers().start(job, 2 * MAX_TIMER_DELAY + 1000, action);
  // One timer at a time, because Node's mock runs all actions of a tick at its end.
  for (const time of [MAX_TIMER_DELAY, MAX_TIMER_DELAY, 999]) t.mock.timers.tick(time);
  assert.equal(action.mock.callCount(), 0);
  t.mock.timers.tick(1);
  assert.equal(action.mock.callCount(), 1);
});

test('starting a job’s timer replaces an earlier one, and stopping it ends it', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const timers = new JobTimers();
  const [first, second, third] = [mock.fn(), mock.fn(), mock.fn()];
  timers.start(job, 10, first);
  timers.start(job, 20, second);
  t.mock.timers.tick(20);
  timers.start(job, 10, third);
  timers.stop(job);
  timers.start(job, 10, third);
  timers.stopAll();
  t.mock.timers.tick(20);
  assert.deepEqual(
    [first, second, third].map((each) => each.mock.callCount()),
    [0, 1, 0],
  );
});
