import assert from 'node:assert/strict';
import { test } from 'node:test';
import { uniqueKeyOf } from '../../src/server/queue-model.ts';
import { NamedPeer, QueueSite } from '../fixtures/queue-site.ts';

test('jobs with the same function and key are coalesced for all their clients', () => {
  const { queue, submit, trySubmit, client, worker } = new QueueSite();
  const other = new NamedPeer('other');
  const job = submit('f', { unique: 'key' });
  assert.equal(trySubmit('f', { unique: 'key' }, other), job);
  assert.deepEqual(job.clients, [client, other]);
  const able = worker('f');
  assert.equal(queue.grab(able), job);
  assert.equal(queue.grab(able), undefined);
});

test('a job can be joined while it runs, but not after its end', () => {
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

test('the unique key - is derived from the payload', () => {
  const { submit } = new QueueSite();
  const job = submit('f', { unique: '-', payload: Buffer.from('a') });
  assert.equal(submit('f', { unique: '-', payload: Buffer.from('a') }), job);
  assert.notEqual(submit('f', { unique: '-', payload: Buffer.from('b') }), job);
  assert.notEqual(uniqueKeyOf('-', Buffer.from('a')), '-');
});

test('a lookup by unique key returns the oldest job of all functions', () => {
  const { queue, submit } = new QueueSite();
  const first = submit('f', { unique: 'key' });
  const second = submit('g', { unique: 'key' });
  assert.equal(queue.jobByUnique('key'), first);
  queue.finish(first);
  assert.equal(queue.jobByUnique('key'), second);
});

test('a job with several clients stays until the last one disconnects', () => {
  const { queue, submit, trySubmit, client } = new QueueSite();
  const other = new NamedPeer('other');
  const job = submit('f', { unique: 'key' });
  trySubmit('f', { unique: 'key' }, other);
  queue.disconnect(client);
  assert.equal(queue.job(job.handle), job);
  queue.disconnect(other);
  assert.equal(queue.job(job.handle), undefined);
});

test('a background job stays when the client of a joined foreground job disconnects', () => {
  for (const isBackground of [true, false]) {
    const { queue, submit, client, worker } = new QueueSite();
    const job = submit('f', { unique: 'key', isBackground });
    submit('f', { unique: 'key', isBackground: !isBackground });
    queue.disconnect(client);
    assert.equal(queue.grab(worker('f')), job);
  }
});
