import assert from 'node:assert/strict';
import { test } from 'node:test';
import { JobSubscribers } from '../../src/client/job-subscribers.ts';
import { SubmittedJob } from '../../src/client/submitted-job.ts';

const job = (name: string) => new SubmittedJob(name, '', {}, () => {});

test('jobs that share a handle take turns in receiving events', () => {
  const subscribers = new JobSubscribers();
  for (const name of ['a', 'b']) subscribers.add(job(name));
  const order = Array.from({ length: 5 }, () => subscribers.next().function);
  assert.deepEqual(order, ['a', 'b', 'a', 'b', 'a']);
});

test('each job that shares a handle gets one final packet', () => {
  const subscribers = new JobSubscribers();
  for (const name of ['a', 'b', 'c']) subscribers.add(job(name));
  for (let status = 0; status < 3; status += 1) subscribers.next();
  const ended = Array.from({ length: 3 }, () => subscribers.takeNext().function);
  assert.deepEqual(ended.toSorted(), ['a', 'b', 'c']);
  assert.equal(subscribers.size, 0);
});

test('iterating over a handle’s subscribers yields each job in order', () => {
  const subscribers = new JobSubscribers();
  for (const name of ['a', 'b']) subscribers.add(job(name));
  assert.deepEqual(
    Array.from(subscribers, (each) => each.function),
    ['a', 'b'],
  );
});
