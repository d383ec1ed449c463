import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SpinGuard } from '../../src/worker/spin-guard.ts';

/** Wakes a sleeper repeatedly without a job. Returns the pauses. */
function vainWakeUps(guard: SpinGuard, clock: { time: number }, count: number, after: number): number[] {
  return Array.from({ length: count }, () => {
    guard.slept();
    clock.time += after;
    return guard.woken();
  });
}

test('a worker tolerates some quick wake-ups without a job, then makes growing pauses', () => {
  const clock = { time: 0 };
  const pauses = vainWakeUps(new SpinGuard(() => clock.time), clock, 18, 1);
  assert.deepEqual(pauses, [0, 0, 0, 0, 0, 0, 0, 0, 0, 10, 20, 40, 80, 160, 320, 640, 1000, 1000]);
});

test('a job or a long sleep resets the count of wake-ups without a job', () => {
  const clock = { time: 0 };
  const guard = new SpinGuard(() => clock.time);
  vainWakeUps(guard, clock, 12, 1);
  guard.served();
  assert.deepEqual(
    vainWakeUps(guard, clock, 9, 1),
    Array.from({ length: 9 }, () => 0),
  );
  vainWakeUps(guard, clock, 3, 1);
  assert.deepEqual(vainWakeUps(guard, clock, 1, 10), [0]);
  assert.deepEqual(
    vainWakeUps(guard, clock, 8, 1),
    Array.from({ length: 8 }, () => 0),
  );
});
