import assert from 'node:assert/strict';
import { test } from 'node:test';
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

test('a peer with few functions is removed at once, unless one with many is being removed', () => {
  const slices = new Slices();
  const { queue, worker } = new QueueSite({ later: slices.later });
  const [first, large, last] = [
    worker('first'),
    worker(...Array.from({ length: 10_000 }, (_, index) => `f${index}`)),
    worker('last'),
  ];
  queue.disconnect(first);
  assert.equal(queue.function('first'), undefined);
  queue.disconnect(large);
  queue.disconnect(last);
  assert.notEqual(queue.function('last'), undefined);
  assert.ok(slices.run() > 10);
  assert.deepEqual([...queue.functions], []);
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
