import assert from 'node:assert/strict';
import { test } from 'node:test';
import { completed, isSameMasked } from '../../src/commands/masked-values.ts';

test('recorded values count, and their secrets come from today', () => {
  const recorded = {
    colour: 'red',
    token: '***',
    url: 'https://me:***@example.org/***/x',
    command: ['curl', '-H', 'Bearer ***', { deep: 'a***' }],
    size: 3,
  };
  const today = {
    colour: 'blue',
    token: 'secret',
    url: 'https://me:pw@example.org/key/x',
    command: ['wget', '-H', 'Bearer secret', { deep: 'ab' }, 'more'],
    size: 4,
    added: 'x',
  };
  assert.deepEqual(completed(recorded, today), {
    values: {
      colour: 'red',
      token: 'secret',
      url: 'https://me:pw@example.org/key/x',
      command: ['curl', '-H', 'Bearer secret', { deep: 'ab' }],
      size: 3,
    },
    missing: [],
  });
});

test("a value whose secret is unknown is today's, or missing", () => {
  const recorded = { url: 'https://me:***@example.org', list: ['a', '***'], token: '***', kept: 'x' };
  const today = { url: 'https://other.example.org', list: ['b'], kept: 'y' };
  assert.deepEqual(completed(recorded, today), {
    values: { url: 'https://other.example.org', list: ['b'], kept: 'x' },
    missing: ['token'],
  });
});

test('values are the same if they differ in masked parts alone', () => {
  for (const [one, other, isSame] of [
    ['a', 'a', true],
    ['a', 'b', false],
    ['***', 'b', true],
    ['b', '***', true],
    ['a***c', 'abc', true],
    ['a***c', 'ac', true],
    ['ab***bc', 'abc', false],
    ['a***b***c', 'a1b2c', true],
    ['a***b***c', 'a1c', false],
    [['***', 'x'], ['b', 'x'], true],
    [['***', 'x'], ['b', 'y'], false],
    [{ a: '***' }, { a: 'b' }, true],
    [{ a: '***' }, {}, false],
    ['***', undefined, false],
    [undefined, '***', false],
    [undefined, undefined, true],
    [1, 2, false],
  ] as const) {
    assert.equal(isSameMasked(one, other), isSame, `${JSON.stringify(one)} ${JSON.stringify(other)}`);
  }
});
