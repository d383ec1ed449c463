import assert from 'node:assert/strict';
import { it } from 'node:test';
import { Pacer } from '../../src/session/pacer.ts';
import { ManualClock } from '../fixtures/manual-clock.ts';

it('lets requests begin an interval apart, however many ask at once', async () => {
  const clock = new ManualClock();
  const pacer = new Pacer(1.5, clock);
  const start = clock.now();
  const starts: number[] = [];
  for (let turn = 0; turn < 3; turn += 1) {
    await pacer.turn();
    starts.push(clock.now() - start);
  }
  assert.deepEqual(starts, [0, 1500, 3000]);
});

it('waits from the start of the request before, not from its end', async () => {
  const clock = new ManualClock();
  const pacer = new Pacer(1, clock);
  await pacer.turn();
  clock.pass(400);
  await pacer.turn();
  clock.pass(5000);
  await pacer.turn();
  assert.deepEqual(clock.sleeps, [600]);
});

it('waits no longer when the clock is set back', async () => {
  let time = 1_000_000_000;
  const sleeps: number[] = [];
  const pacer = new Pacer(1, { now: () => time, sleep: async (pause) => void sleeps.push(pause) });
  await pacer.turn();
  time -= 900_000_000;
  await pacer.turn();
  assert.deepEqual(sleeps, [1000]);
});

it('three who ask in the same turn get three different times', async () => {
  const clock = new ManualClock();
  const sleeps: number[] = [];
  const pacer = new Pacer(1, { now: () => clock.now(), sleep: async (time) => void sleeps.push(time) });
  await Promise.all([pacer.turn(), pacer.turn(), pacer.turn()]);
  assert.deepEqual(sleeps, [1000, 2000]);
});

it('who aborts does not wait', async () => {
  const pacer = new Pacer(1, new ManualClock());
  await pacer.turn();
  await assert.rejects(pacer.turn(AbortSignal.abort()), { name: 'AbortError' });
});
