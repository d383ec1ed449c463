import assert from 'node:assert/strict';
import { test } from 'node:test';
import { attempt, checkClock } from '../../src/diagnosis/check-result.ts';

const NOW = Date.parse('2026-11-23T12:00:00Z');

test('the check of a clock accepts half a minute, warns above, and reports a problem for tokens', () => {
  const check = (seconds: number) => checkClock('cloud a', new Date(NOW - seconds * 1000).toUTCString(), NOW);
  assert.equal(check(-20)?.status, 'ok');
  assert.deepEqual([check(60)?.status, check(60)?.message], ['warning', 'is 60 s ahead']);
  assert.deepEqual([check(-3600)?.status, check(-3600)?.message], ['problem', 'is 3600 s behind']);
  assert.equal(checkClock('cloud a', undefined, NOW), undefined);
  assert.equal(checkClock('cloud a', 'soon', NOW), undefined);
});

test('the last part of an error’s message becomes a check’s remedy', async () => {
  const { signal } = new AbortController();
  const failing = async (message: string) =>
    (await attempt('a', signal, () => Promise.reject(new Error(message)), 'pray')).problem;
  assert.partialDeepStrictEqual(await failing('it broke; really; mend it'), {
    message: 'it broke; really',
    remedy: 'mend it',
  });
  assert.partialDeepStrictEqual(await failing('it broke'), { message: 'it broke', remedy: 'pray' });
  assert.deepEqual(await attempt('a', signal, async () => 5), { value: 5 });
  const stop = AbortSignal.abort(new Error('stopped'));
  await assert.rejects(
    attempt('a', stop, () => Promise.reject(new Error('late'))),
    /stopped/,
  );
});
