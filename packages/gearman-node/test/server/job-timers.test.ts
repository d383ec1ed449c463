import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { JobTimers } from '../../src/server/job-timers.ts';
import type { ServerJob } from '../../src/server/queue-model.ts';
import type { ServerConnection } from '../../src/server/server-connection.ts';

const job = {} as ServerJob<ServerConnection>;
/** The longest delay that Node's timers take. */
const LONGEST = 2 ** 31 - 1;

test('the action is due after the delay, once', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const action = mock.fn();
  new JobTimers().start(job, 1000, action);
  t.mock.timers.tick(999);
  assert.equal(action.mock.callCount(), 0);
  t.mock.timers.tick(1);
  t.mock.timers.tick(10_000);
  assert.equal(action.mock.callCount(), 1);
});

test('a delay may be longer than a timer of Node’s can be', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const action = mock.fn();
  new JobTimers().start(job, 2 * LONGEST + 1000, action);
  // Timer by timer: Node's mock takes the end of a tick for the time at which all in it happens.
  for (const time of [LONGEST, LONGEST, 999]) t.mock.timers.tick(time);
  assert.equal(action.mock.callCount(), 0);
  t.mock.timers.tick(1);
  assert.equal(action.mock.callCount(), 1);
});

test('a new start replaces the old one, and stop ends it', (t) => {
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
