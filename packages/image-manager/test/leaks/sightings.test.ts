import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Sightings } from '../../src/leaks/sightings.ts';

test('what is seen twice in a row counts, at the second look and at each that follows', () => {
  const sightings = new Sightings();
  assert.deepEqual([...sightings.look(['a'])], []);
  assert.deepEqual([...sightings.look(['a', 'b'])], ['a']);
  assert.deepEqual([...sightings.look(['b', 'a'])], ['b', 'a']);
});

test('what is missed once begins anew', () => {
  const sightings = new Sightings();
  sightings.look(['a']);
  sightings.look([]);
  assert.deepEqual([...sightings.look(['a'])], []);
});
