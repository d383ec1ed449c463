import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { ReplyTimer } from '../../src/connection/reply-timer.ts';

function watched(): { timer: ReplyTimer; silences: () => number } {
  const onSilence = mock.fn();
  return { timer: new ReplyTimer(100, onSilence), silences: () => onSilence.mock.callCount() };
}

test('fires when a request is left unanswered for the limit, and not before', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const { timer, silences } = watched();
  timer.sent();
  t.mock.timers.tick(99);
  assert.equal(silences(), 0);
  t.mock.timers.tick(1);
  assert.equal(silences(), 1);
});

/**
 * With the real clock, for Node's mock of timers has a refresh() that does nothing. Timers of the same length fire in
 * the order in which they were set, however late: which of two comes first does not depend on the machine.
 */
async function firstOf(between: (timer: ReplyTimer) => void): Promise<string> {
  const alive = setTimeout(() => {}, 10_000); // a ReplyTimer keeps no process alive
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

test('each answer gives those that are outstanding the whole limit again', async () => {
  assert.equal(await firstOf((timer) => timer.answered()), 'control');
});

test('a further request does not put off the silence of the first', async () => {
  assert.equal(await firstOf((timer) => timer.sent()), 'silence');
});

test('does not fire when all is answered, nor after stop', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const { timer, silences } = watched();
  timer.sent();
  timer.sent();
  timer.answered(2);
  t.mock.timers.tick(1000);
  timer.sent();
  timer.stop();
  t.mock.timers.tick(1000);
  assert.equal(silences(), 0);
  assert.equal(timer.outstanding, 0);
});

test('more answers than requests do not make later requests count as answered', () => {
  const { timer } = watched();
  timer.answered(3);
  timer.sent();
  assert.equal(timer.outstanding, 1);
  timer.stop();
});
