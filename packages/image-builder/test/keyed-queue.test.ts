import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { KeyedQueue } from '../src/keyed-queue.ts';

test('operations with one key run one after the other, also after a failure, and others concurrently', async () => {
  const turns = new KeyedQueue();
  const events: string[] = [];
  const first = Promise.withResolvers<void>();
  const one = turns.run('a', {}, async () => {
    events.push('one');
    await first.promise;
    throw new Error('fault');
  });
  const two = turns.run('a', {}, async () => events.push('two'));
  await turns.run('b', {}, async () => events.push('other'));
  first.resolve();
  await assert.rejects(one, /fault/);
  await two;
  assert.deepEqual(events, ['one', 'other', 'two']);
});

test('an operation that is aborted while it waits does not begin', async () => {
  const turns = new KeyedQueue();
  const first = Promise.withResolvers<void>();
  const one = turns.run('a', {}, async () => await first.promise);
  const stop = new AbortController();
  const two = turns.run('a', { signal: stop.signal }, async () => assert.fail('it began'));
  stop.abort(new Error('cancelled'));
  first.resolve();
  await assert.rejects(two, /cancelled/);
  await one;
});

test('an operation that is aborted while it waits ends at once, and the next one still waits', async () => {
  const turns = new KeyedQueue();
  const first = Promise.withResolvers<void>();
  const events: string[] = [];
  const one = turns.run('a', {}, async () => await first.promise);
  const stop = new AbortController();
  const two = turns.run('a', { signal: stop.signal }, async () => assert.fail('it began'));
  stop.abort(new Error('cancelled'));
  await assert.rejects(two, /cancelled/);
  const three = turns.run('a', {}, async () => events.push('three'));
  await setImmediate();
  assert.deepEqual(events, []);
  first.resolve();
  await Promise.all([one, three]);
  assert.deepEqual(events, ['three']);
});

test('an operation that is aborted once it has begun is awaited', async () => {
  const turns = new KeyedQueue();
  const stop = new AbortController();
  const events: string[] = [];
  const work = async (): Promise<void> => {
    stop.abort(new Error('cancelled'));
    await setImmediate();
    events.push('ended');
  };
  await turns.run('a', { signal: stop.signal }, work);
  assert.deepEqual(events, ['ended']);
});
