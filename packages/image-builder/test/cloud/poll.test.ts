import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { poll } from '../../src/cloud/poll.ts';

const { signal } = new AbortController();
const onTimeout = (): Error => new Error('over');

test('polling returns the first value', async () => {
  const seen = [undefined, undefined, 'it', 'another'];
  assert.equal(await poll(async () => seen.shift(), { timeout: 60, signal, onTimeout }), 'it');
  assert.deepEqual(seen, ['another']);
});

test('polling checks once more after the timeout', async () => {
  const started = performance.now();
  let last = 0;
  const looking = poll(
    async () => {
      last = performance.now() - started;
      return undefined;
    },
    { timeout: 0.15, signal, onTimeout },
  );
  await assert.rejects(looking, { message: 'over' });
  assert.ok(last >= 149, `after ${last} ms`);
});

test('polling starts its last check after the timeout', async () => {
  const looks = [() => delay(60), async () => 'it'];
  assert.equal(
    await poll(async () => (await looks.shift()?.()) ?? undefined, { timeout: 0.05, signal, onTimeout }),
    'it',
  );
});

test('an abort ends polling', async () => {
  const abort = new AbortController();
  const looking = poll(async () => undefined, { timeout: 60, signal: abort.signal, onTimeout });
  await delay(1);
  abort.abort();
  await assert.rejects(looking, { name: 'AbortError' });
});
