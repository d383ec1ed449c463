import assert from 'node:assert/strict';
import { test } from 'node:test';
import { QueueSite } from '../fixtures/queue-site.ts';

test('a new job wakes one sleeping worker that has its function', () => {
  const { submit, sleeper, woken } = new QueueSite();
  sleeper('g');
  sleeper('f');
  sleeper('f', 'g');
  submit('f');
  assert.deepEqual(woken, ['f']);
});

test('each further job wakes another sleeping worker', () => {
  const { submit, sleeper, woken } = new QueueSite();
  sleeper('f');
  sleeper('f', 'g');
  for (let jobs = 0; jobs < 3; jobs += 1) submit('f');
  assert.deepEqual(woken, ['f', 'f,g']);
});

test('a worker that falls asleep while a job waits is woken at once', () => {
  const { submit, sleeper, woken } = new QueueSite();
  submit('f');
  sleeper('f');
  assert.deepEqual(woken, ['f']);
});

test('a sleeping worker that registers a function with a waiting job is woken', () => {
  const { queue, submit, sleeper, woken } = new QueueSite();
  submit('f');
  const worker = sleeper('g');
  queue.offer(worker, 'f');
  assert.deepEqual(woken, ['g']);
});

test('a worker that is awake is not woken', () => {
  const { queue, submit, sleeper, woken } = new QueueSite();
  const worker = sleeper('f');
  assert.equal(queue.grab(worker), undefined);
  submit('f');
  assert.deepEqual(woken, []);
});

test('another sleeping worker is woken if the woken one takes another job', () => {
  const { queue, submit, worker, sleeper, woken } = new QueueSite();
  const first = sleeper('f', 'g');
  sleeper('f');
  submit('f');
  const urgent = submit('g', { priority: 'high' });
  assert.deepEqual(woken, ['f,g']);
  assert.equal(queue.grab(first), urgent);
  assert.deepEqual(woken, ['f,g', 'f']);
  assert.notEqual(queue.grab(worker('f')), undefined);
});

test('another sleeping worker is woken if the woken one is lost', () => {
  const { queue, submit, sleeper, woken } = new QueueSite();
  const first = sleeper('f', 'g');
  sleeper('f');
  submit('f');
  queue.disconnect(first);
  assert.deepEqual(woken, ['f,g', 'f']);
});

test('a lost worker’s job wakes another worker', () => {
  const { queue, submit, worker, sleeper, woken } = new QueueSite();
  submit('f');
  const lost = worker('f');
  queue.grab(lost);
  sleeper('f');
  assert.deepEqual(woken, []);
  queue.disconnect(lost);
  assert.deepEqual(woken, ['f']);
});

test('waking all workers skips a woken worker that does not grab', () => {
  const { queue, submit, sleeper, woken } = new QueueSite();
  sleeper('f', 'g');
  sleeper('f');
  sleeper('h');
  submit('f');
  queue.wakeAll();
  assert.deepEqual(woken, ['f,g', 'f']);
});

test('a lost sleeping worker is not woken', () => {
  const { queue, submit, sleeper, woken } = new QueueSite();
  queue.disconnect(sleeper('f'));
  submit('f');
  assert.deepEqual(woken, []);
});
