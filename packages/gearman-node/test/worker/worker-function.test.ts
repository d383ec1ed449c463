import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkWorkerFunction } from '../../src/worker/worker-function.ts';

const handler = () => {};

test('a function’s time limit is a whole number of milliseconds', () => {
  checkWorkerFunction('f', { handler, timeout: 1 });
  checkWorkerFunction('f', handler);
  for (const timeout of [0, -1, 1.5, Number.NaN, 2 ** 31]) {
    assert.throws(() => checkWorkerFunction('f', { handler, timeout }), {
      code: 'invalid-argument',
      message: new RegExp(`of f ${timeout} `),
    });
  }
});

test('a worker rejects a function without a handler', () => {
  const wrong: readonly unknown[] = [
    undefined,
    null,
    'f',
    { timeout: 1 },
    { handler: 'f', timeout: 1 },
    { handler },
  ];
  for (const declared of wrong) {
    assert.throws(() => checkWorkerFunction('f', declared as never), { code: 'invalid-argument' });
  }
});
