import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { ReplyTimer } from '../../src/connection/reply-timer.ts';

function watched(): { timer: ReplyTimer; silences: () => number } {
  const onSilence = mock.fn();
  return { timer: new ReplyTimer(100, onSilence), silences: () => onSilence.mock.callCount() };
}

test('the reply timer fires once a request has had no response for the time limit, and not earlier', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const { timer, silences } = watched();
  timer.sent();
  t.mock.timers.tick(99);
  assert.equal(silences(), 0);
  t.mock.timers.tick(1);
  assert.equal(silences(), 1);
});

/**
 * Returns the first of silence and a control timer. It uses the real clock, because refresh() of Node's mock timers has
 * no effect. Timers with the same delay fire in the order of their start, so the result does not depend on the machine.
 */
async function firstOf(between: (timer: ReplyTimer) => void): Promise<string> {
  const alive = setTimeout(() => {}, 10_000); // a ReplyTimer does not keep a process alive
  const order: string[] = [];
  const { promise: silence, resolve } = Promise.withResolvers<void>();
  const timer = new ReplyTimer(100, () => {
    order.push('silence');
    resolve();
  });
  timer.sent();
  timer.sent();
  await delay(10);
  const control = delay(100).then(() => order.push('control'));
  between(timer);
  await Promise.all([silence, control]);
  clearTimeout(alive);
  return order[0] ?? '';
}

test('each response restarts the time limit for the outstanding requests', async () => {
  assert.equal(await firstOf((timer) => timer.replied()), 'control');
});

test('a further request does not restart the time limit of the first', async () => {
  assert.equal(await firstOf((timer) => timer.sent()), 'silence');
});

test('the reply timer does not fire after the last response or after it is stopped', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const { timer, silences } = watched();
  timer.sent();
  timer.sent();
  timer.replied(2);
  t.mock.timers.tick(1000);
  timer.sent();
  timer.stop();
  t.mock.timers.tick(1000);
  assert.equal(silences(), 0);
  assert.equal(timer.outstanding, 0);
});

test('surplus responses do not count for later requests', () => {
  const { timer } = watched();
  timer.replied(3);
  timer.sent();
  assert.equal(timer.outstanding, 1);
  timer.stop();
});
