import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { LongTimer } from '../src/long-timer.ts';

const DAY = 24 * 60 * 60 * 1000;

test('a timer of 60 days fires after 60 days, and not before', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const action = mock.fn();
  const timer = new LongTimer(60 * DAY, action);
  for (let days = 1; days < 60; days += 1) t.mock.timers.tick(DAY);
  assert.equal(action.mock.callCount(), 0);
  t.mock.timers.tick(2 * DAY); // the mock restarts a timer at the end of a tick
  t.mock.timers.tick(DAY);
  assert.equal(action.mock.callCount(), 1);
  timer.stop();
});

test('a long timer can be stopped at any time, and an infinite one never fires', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const action = mock.fn();
  const stopped = new LongTimer(30 * DAY, action);
  const infinite = new LongTimer(Number.POSITIVE_INFINITY, action);
  t.mock.timers.tick(28 * DAY);
  stopped.stop();
  for (let days = 0; days < 1000; days += 1) t.mock.timers.tick(DAY);
  infinite.stop();
  assert.equal(action.mock.callCount(), 0);
});
