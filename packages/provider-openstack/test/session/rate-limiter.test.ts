import assert from 'node:assert/strict';
import { it } from 'node:test';
import { RateLimiter } from '../../src/session/transport.ts';
import { ManualClock } from '../fixtures/manual-clock.ts';

it('the rate limiter starts requests an interval apart', async () => {
  const clock = new ManualClock();
  const limiter = new RateLimiter(1.5, clock);
  const start = clock.now();
  const starts: number[] = [];
  for (let turn = 0; turn < 3; turn += 1) {
    await limiter.turn();
    starts.push(clock.now() - start);
  }
  assert.deepEqual(starts, [0, 1500, 3000]);
});

it('the rate limiter’s interval begins with the start of a request, not with its end', async () => {
  const clock = new ManualClock();
  const limiter = new RateLimiter(1, clock);
  await limiter.turn();
  clock.pass(400);
  await limiter.turn();
  clock.pass(5000);
  await limiter.turn();
  assert.deepEqual(clock.sleeps, [600]);
});

it('the rate limiter does not extend a delay after the clock is set back', async () => {
  let time = 1_000_000_000;
  const sleeps: number[] = [];
  const limiter = new RateLimiter(1, { now: () => time, sleep: async (pause) => void sleeps.push(pause) });
  await limiter.turn();
  time -= 900_000_000;
  await limiter.turn();
  assert.deepEqual(sleeps, [1000]);
});

it('the rate limiter gives three concurrent requests three different start times', async () => {
  const clock = new ManualClock();
  const sleeps: number[] = [];
  const limiter = new RateLimiter(1, {
    now: () => clock.now(),
    sleep: async (time) => void sleeps.push(time),
  });
  await Promise.all([limiter.turn(), limiter.turn(), limiter.turn()]);
  assert.deepEqual(sleeps, [1000, 2000]);
});

it('the rate limiter does not delay an aborted request', async () => {
  const limiter = new RateLimiter(1, new ManualClock());
  await limiter.turn();
  await assert.rejects(limiter.turn(AbortSignal.abort()), { name: 'AbortError' });
});
