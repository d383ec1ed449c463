import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { QueueSite } from '../fixtures/queue-site.ts';

test('workers get the jobs of their functions, the oldest first', () => {
  const { queue, submit, worker } = new QueueSite();
  const [first, second] = [submit('f'), submit('f')];
  const other = worker('g');
  assert.equal(queue.grab(other), undefined);
  const able = worker('f');
  assert.equal(queue.grab(able), first);
  assert.equal(queue.grab(able), second);
  assert.equal(queue.grab(able), undefined);
  assert.deepEqual([...able.running], [first, second]);
});

test('job handles begin with the server’s prefix and are numbered', () => {
  const { submit } = new QueueSite();
  assert.deepEqual([submit('f').handle, submit('f').handle], ['H:test:1', 'H:test:2']);
});

test('the queue assigns the most urgent job first, regardless of its function', () => {
  const { queue, submit, worker } = new QueueSite();
  const low = submit('f', { priority: 'low' });
  const normal = submit('g', { priority: 'normal' });
  const high = submit('f', { priority: 'high' });
  const able = worker('f', 'g');
  assert.deepEqual([queue.grab(able), queue.grab(able), queue.grab(able)], [high, normal, low]);
});

test('functions with jobs of one priority take turns', () => {
  const { queue, submit, worker } = new QueueSite();
  for (const name of ['f', 'f', 'f', 'g', 'g', 'h']) submit(name);
  const able = worker('f', 'g', 'h');
  const order = Array.from({ length: 6 }, () => queue.grab(able)?.queue.name);
  assert.deepEqual(order, ['f', 'g', 'h', 'f', 'g', 'f']);
});

test('a worker’s functions take turns among many other functions', () => {
  const { queue, submit, worker } = new QueueSite();
  for (const name of ['a', 'b', 'c', 'd', 'f', 'f', 'g', 'g']) submit(name);
  const able = worker('f', 'g');
  const order = Array.from({ length: 4 }, () => queue.grab(able)?.queue.name);
  assert.deepEqual(order, ['f', 'g', 'f', 'g']);
});

test('a finished job is no longer in the queue', () => {
  const { queue, submit, worker, client } = new QueueSite();
  const job = submit('f', { unique: 'key' });
  const able = worker('f');
  queue.grab(able);
  queue.finish(job);
  assert.equal(queue.job(job.handle), undefined);
  assert.equal(queue.jobByUnique('key'), undefined);
  assert.deepEqual([[...queue.jobs], client.submitted.size, able.running.size], [[], 0, 0]);
});

test('a job can be removed from the middle of the queue', () => {
  const { queue, submit, worker } = new QueueSite();
  const [first, middle, last] = [submit('f'), submit('f'), submit('f')];
  queue.finish(middle);
  const able = worker('f');
  assert.deepEqual([queue.grab(able), queue.grab(able), queue.grab(able)], [first, last, undefined]);
});

test('a lost worker’s job is queued again, and its retries are counted', () => {
  const { queue, submit, worker } = new QueueSite();
  const job = submit('f');
  const lost = worker('f');
  queue.grab(lost);
  queue.disconnect(lost);
  assert.deepEqual([job.worker, job.retries], [undefined, 1]);
  assert.equal(queue.grab(worker('f')), job);
});

test('a running job stays with its worker when the worker removes the function', () => {
  const { queue, submit, worker } = new QueueSite();
  const job = submit('f');
  const able = worker('f', 'g');
  queue.grab(able);
  queue.withdraw(able, 'f');
  queue.withdrawAll(able);
  assert.equal(job.worker, able);
  assert.equal(queue.grab(worker('f')), undefined);
});

test('a waiting foreground job is removed with its client', () => {
  const { queue, submit, worker, client } = new QueueSite();
  submit('f');
  queue.disconnect(client);
  assert.equal(queue.grab(worker('f')), undefined);
  assert.deepEqual([...queue.jobs], []);
});

test('a running foreground job continues without its client, and is not repeated', () => {
  const { queue, submit, worker, client } = new QueueSite();
  const job = submit('f');
  const able = worker('f');
  queue.grab(able);
  queue.disconnect(client);
  assert.equal(queue.job(job.handle), job);
  queue.disconnect(able);
  assert.equal(queue.job(job.handle), undefined);
});

test('a background job survives the loss of its client', () => {
  const { queue, submit, worker, client } = new QueueSite();
  const job = submit('f', { isBackground: true });
  queue.disconnect(client);
  assert.equal(queue.grab(worker('f')), job);
});

test('a job is removed with a connection that both submitted and runs it', () => {
  const { queue, submit, client } = new QueueSite();
  submit('f');
  queue.offer(client, 'f');
  queue.grab(client);
  queue.disconnect(client);
  assert.deepEqual([[...queue.jobs], [...queue.functions]], [[], []]);
});

test('a held job is assigned once it is released', () => {
  const { queue, submit, worker } = new QueueSite();
  const job = submit('f', { isBackground: true, isHeld: true });
  const able = worker('f');
  assert.equal(queue.grab(able), undefined);
  queue.release(job);
  assert.equal(queue.grab(able), job);
});

test('releasing a cancelled job has no effect', () => {
  const { queue, submit, worker } = new QueueSite();
  const able = worker('f');
  const job = submit('f', { isBackground: true, isHeld: true });
  queue.finish(job);
  queue.release(job);
  assert.equal(queue.grab(able), undefined);
});

test('a job fails once it has lost maxAttempts workers', () => {
  const { queue, submit, worker, givenUp } = new QueueSite({ maxAttempts: 2 });
  const job = submit('f', { isBackground: true });
  for (const others of [[], [job.handle]]) {
    const lost = worker('f');
    assert.equal(queue.grab(lost), job);
    queue.disconnect(lost);
    assert.deepEqual(givenUp, others);
  }
  assert.equal(queue.job(job.handle), undefined);
  assert.equal(queue.grab(worker('f')), undefined);
});

test('a drained queue assigns no jobs, wakes no workers, and waits for the running jobs', async () => {
  const { queue, submit, worker, sleeper, woken } = new QueueSite();
  const [first, second] = [submit('f'), submit('f')];
  const [finishing, losing] = [worker('f'), worker('f')];
  queue.grab(finishing);
  queue.grab(losing);
  submit('f');
  const drained = queue.drain();
  assert.equal(queue.grab(finishing), undefined);
  sleeper('f');
  assert.deepEqual(woken, []);
  queue.finish(first);
  assert.equal(await Promise.race([drained, setImmediate('still running')]), 'still running');
  queue.requeue(second);
  await drained;
  await queue.drain();
});
