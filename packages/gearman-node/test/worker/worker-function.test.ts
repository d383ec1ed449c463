import assert from 'node:assert/strict';
import { test } from 'node:test';
import { declaredFunction } from '../../src/worker/worker-function.ts';

const handler = () => {};

test('a handler alone has no time limit', () => {
  assert.deepEqual(declaredFunction('f', handler), { handler, timeout: undefined });
  assert.deepEqual(declaredFunction('f', { handler, timeout: 1 }), { handler, timeout: 1 });
});

test('a time limit is a whole number of milliseconds', () => {
  for (const timeout of [0, -1, 1.5, Number.NaN, 2 ** 31]) {
    assert.throws(() => declaredFunction('f', { handler, timeout }), {
      code: 'invalid-argument',
      message: new RegExp(`of f, ${timeout},`),
    });
  }
});
