import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { JsonReader, utcTime } from '../src/json-reader.ts';

const PERSON = new JsonReader({
  type: 'object',
  required: ['name', 'born'],
  properties: {
    name: { type: 'string' },
    born: { type: 'string', format: 'date-time' },
    pets: { type: 'array', items: { enum: ['cat', 'dog'] } },
    version: { const: 1 },
    'a/b': { type: ['integer', 'null'] },
  },
});

test('the JSON reader accepts unknown keys', () => {
  const person = { name: 'Ada', born: '1815-12-10T00:00:00Z', pets: ['cat'], 'a/b': null, more: 1 };
  assert.deepEqual(PERSON.parse(JSON.stringify(person)), person);
});

describe('errors of the JSON reader', () => {
  const valid = { name: 'Ada', born: '1815-12-10' };
  const invalid: readonly (readonly [string, string])[] = [
    ['{"name": "secret', 'it is not JSON'],
    ['[]', 'it is not an object'],
    ['{"name": "Ada"}', 'born is missing'],
    [JSON.stringify({ ...valid, name: 1 }), 'name is not a string'],
    [JSON.stringify({ ...valid, born: 'long ago' }), 'born is not a time'],
    [JSON.stringify({ ...valid, pets: ['cat', 'owl'] }), 'pets[1] is not one of cat, dog'],
    [JSON.stringify({ ...valid, version: 2 }), 'version is not 1'],
    [JSON.stringify({ ...valid, 'a/b': 0.5 }), 'a/b is not a whole number'],
  ];
  for (const [text, message] of invalid) {
    test(`the JSON reader’s error names the place and the reason without a secret: ${message}`, () =>
      assert.throws(() => PERSON.parse(text), { message }));
  }
});

test('the JSON reader’s error has the name of the checked value', () => {
  assert.throws(() => PERSON.check({ born: 'x', name: 1 }, 'the response'), /^Error: the response\./);
  assert.throws(() => PERSON.check(undefined, 'the response'), { message: 'the response is not an object' });
});

test('the JSON reader’s error names an unknown key where the schema allows none', () => {
  const strict = new JsonReader({ type: 'object', additionalProperties: false, properties: {} });
  for (const [key, quoted] of [
    ['more', '"more"'],
    ['a/b', '"a/b"'],
    ['', '""'],
    ['\u001b[2J', String.raw`"\u001b[2J"`],
  ] as const) {
    assert.throws(() => strict.check({ [key]: 1 }), { message: `it has the unknown key ${quoted}` });
  }
});

test('the JSON reader treats a time without a zone as UTC', () => {
  const noon = Date.UTC(2026, 0, 2, 12);
  for (const time of ['2026-01-02T12:00:00', '2026-01-02T12:00:00Z', '2026-01-02T14:00:00.000+02:00']) {
    assert.equal(utcTime(time), noon);
  }
});
