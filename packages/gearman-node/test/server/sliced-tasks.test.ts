import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SlicedTasks } from '../../src/server/sliced-tasks.ts';
import { QueueSite } from '../fixtures/queue-site.ts';

/** Slices that a test runs. */
class Slices {
  readonly #slices: (() => void)[] = [];

  readonly later = (slice: () => void): void => void this.#slices.push(slice);

  /** Runs all slices. Returns their number. */
  run(): number {
    let count = 0;
    for (let slice = this.#slices.shift(); slice; slice = this.#slices.shift()) {
      slice();
      count += 1;
    }
    return count;
  }
}

function* steps(count: number, done: () => void): Generator {
  for (let step = 0; step < count; step += 1) yield;
  done();
}

test('a short task runs at once, a long one in slices, and the next one after it', () => {
  const slices = new Slices();
  const tasks = new SlicedTasks(slices.later);
  const log: string[] = [];
  tasks.run(steps(10, () => log.push('short')));
  tasks.run(steps(10_000, () => log.push('long')));
  tasks.run(steps(10, () => log.push('next')));
  assert.deepEqual(log, ['short']);
  assert.ok(slices.run() > 10);
  assert.deepEqual(log, ['short', 'long', 'next']);
});

test('a worker with many functions is removed in slices', () => {
  const slices = new Slices();
  const { queue, worker } = new QueueSite({ later: slices.later });
  const gone = worker(...Array.from({ length: 2000 }, (_, index) => `f${index}`));
  queue.disconnect(gone);
  assert.equal(queue.function('f0'), undefined);
  assert.notEqual(queue.function('f1999'), undefined);
  slices.run();
  assert.deepEqual([...queue.functions], []);
});

test('a function that is registered again while it is being removed stays registered', () => {
  const slices = new Slices();
  const { queue, worker, submit } = new QueueSite({ later: slices.later });
  const peer = worker(...Array.from({ length: 2000 }, (_, index) => `f${index}`));
  queue.withdrawAll(peer);
  queue.offer(peer, 'f1999');
  queue.offer(peer, 'f0');
  slices.run();
  assert.deepEqual(Array.from(queue.functions, ({ name }) => name).toSorted(), ['f0', 'f1999']);
  const job = submit('f1999');
  assert.equal(queue.grab(peer), job);
});

test('a lost client’s waiting jobs are removed in slices, and those that another client joined stay', () => {
  const slices = new Slices();
  const { queue, client, submit, trySubmit, worker } = new QueueSite({ later: slices.later });
  const other = worker();
  for (let job = 0; job < 2000; job += 1) submit('f', { unique: String(job) });
  queue.disconnect(client);
  const joined = trySubmit('f', { unique: '1999' }, other);
  slices.run();
  assert.deepEqual([...queue.jobs], [joined]);
});
