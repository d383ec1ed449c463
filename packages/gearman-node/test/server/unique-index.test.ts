import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Peer } from '../../src/server/queue-model.ts';
import { uniqueKeyOf } from '../../src/server/unique-index.ts';
import { QueueSite } from '../fixtures/queue-site.ts';

test('jobs of one function and one key are one job, which goes to all who submitted it', () => {
  const { queue, submit, trySubmit, client, worker } = new QueueSite();
  const other = new Peer('other');
  const job = submit('f', { unique: 'key' });
  assert.equal(trySubmit('f', { unique: 'key' }, other), job);
  assert.deepEqual(job.clients, [client, other]);
  const able = worker('f');
  assert.equal(queue.grab(able), job);
  assert.equal(queue.grab(able), undefined);
});

test('a job can be joined while it runs, and no longer when it is over', () => {
  const { queue, submit, worker } = new QueueSite();
  const job = submit('f', { unique: 'key' });
  queue.grab(worker('f'));
  assert.equal(submit('f', { unique: 'key' }), job);
  queue.finish(job);
  assert.notEqual(submit('f', { unique: 'key' }), job);
});

test('jobs without a key, or of different functions, are different jobs', () => {
  const { submit } = new QueueSite();
  assert.notEqual(submit('f'), submit('f'));
  assert.notEqual(submit('f', { unique: 'key' }), submit('g', { unique: 'key' }));
});

test('the key - stands for the payload', () => {
  const { submit } = new QueueSite();
  const job = submit('f', { unique: '-', payload: Buffer.from('a') });
  assert.equal(submit('f', { unique: '-', payload: Buffer.from('a') }), job);
  assert.notEqual(submit('f', { unique: '-', payload: Buffer.from('b') }), job);
  assert.notEqual(uniqueKeyOf('-', Buffer.from('a')), '-');
});

test('a job is found by its key; of several functions, the oldest', () => {
  const { queue, submit } = new QueueSite();
  const first = submit('f', { unique: 'key' });
  const second = submit('g', { unique: 'key' });
  assert.equal(queue.jobByUnique('key'), first);
  queue.finish(first);
  assert.equal(queue.jobByUnique('key'), second);
});

test('a job stays as long as one of its clients does', () => {
  const { queue, submit, trySubmit, client } = new QueueSite();
  const other = new Peer('other');
  const job = submit('f', { unique: 'key' });
  trySubmit('f', { unique: 'key' }, other);
  queue.disconnect(client);
  assert.equal(queue.job(job.handle), job);
  queue.disconnect(other);
  assert.equal(queue.job(job.handle), undefined);
});

test('a background job that a foreground one joined stays when that one’s client goes', () => {
  for (const isBackground of [true, false]) {
    const { queue, submit, client, worker } = new QueueSite();
    const job = submit('f', { unique: 'key', isBackground });
    submit('f', { unique: 'key', isBackground: !isBackground });
    queue.disconnect(client);
    assert.equal(queue.grab(worker('f')), job);
  }
});
