import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  checkChoice,
  checkCount,
  checkFunctionName,
  checkHandle,
  checkPayload,
  checkRange,
  checkUnique,
} from '../src/argument-checks.ts';
import { GearmanError } from '../src/errors.ts';

const refused = (pattern: RegExp) => (error: unknown) =>
  error instanceof GearmanError && error.code === 'invalid-argument' && pattern.test(error.message);

test('a function name has 1 to 512 bytes and no NUL', () => {
  for (const name of ['f', 'a b\tc', 'image-build:debian', 'ü'.repeat(256)]) checkFunctionName(name);
  for (const name of ['', 'a\0b', 'x'.repeat(513), 'ü'.repeat(257)]) {
    assert.throws(() => checkFunctionName(name), refused(/function name/));
  }
});

test('a unique key has at most 63 bytes and no NUL', () => {
  for (const key of ['', '-', 'x'.repeat(63)]) checkUnique(key);
  for (const key of ['a\0b', 'x'.repeat(64), 'ü'.repeat(32)]) {
    assert.throws(() => checkUnique(key), refused(/unique key/));
  }
});

test('a handle has 1 to 63 bytes and no NUL', () => {
  for (const handle of ['H:host:1', 'x'.repeat(63)]) checkHandle(handle);
  for (const handle of ['', 'H\0', 'x'.repeat(64)]) {
    assert.throws(() => checkHandle(handle), refused(/job handle/));
  }
});

test('a count is a non-negative integer', () => {
  for (const count of [0, 1, 2 ** 53 - 1]) checkCount(count);
  for (const count of [0.5, -1, Number.NaN, Number.POSITIVE_INFINITY]) {
    assert.throws(() => checkCount(count), refused(new RegExp(`number ${count} .*whole number`)));
  }
});

test('the error for an invalid argument shows only the beginning of a long text', () => {
  assert.throws(
    () => checkFunctionName('x'.repeat(100_000)),
    (error: Error) => error.message.length < 300,
  );
});

test('an argument of a wrong type is rejected with an error that names it', () => {
  const wrong: readonly unknown[] = [undefined, null, 1, {}, [], Symbol('s'), () => {}, Object.create(null)];
  for (const value of wrong as readonly never[]) {
    for (const check of [checkFunctionName, checkHandle, checkPayload, checkUnique]) {
      assert.throws(() => check(value), refused(/cannot be used/));
    }
  }
  checkPayload(new Uint8Array(1));
});

test('an unknown choice and a number out of range are rejected', () => {
  checkChoice('priority', 'low', ['high', 'low']);
  assert.throws(() => checkChoice('priority', 'urgent', ['high', 'low']), refused(/"urgent".*high or low/));
  for (const value of [1, 2, undefined]) checkRange('timeout', value, 1, 2);
  for (const value of [0, 3, Number.NaN, '1' as never, null as never]) {
    assert.throws(() => checkRange('timeout', value, 1, 2), refused(/timeout .* from 1 to 2/));
  }
});
