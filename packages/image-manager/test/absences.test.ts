import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Absences } from '../src/absences.ts';

test('an image is absent from when it was first missed, until it is offered again', () => {
  const absences = new Absences();
  absences.look(['a', 'b'], new Set(['a']), 1000);
  absences.look(['a', 'b'], new Set([]), 2000);
  assert.deepEqual([absences.since('a'), absences.since('b')], [2000, 1000]);
  absences.look(['a', 'b'], new Set(['b']), 3000);
  assert.deepEqual([...absences.all], [['a', 2000]]);
  absences.look(['a', 'b'], new Set([]), 4000);
  assert.equal(absences.since('b'), 4000);
});

test('what is not expected any more is not absent', () => {
  const absences = new Absences();
  absences.look(['a'], new Set(), 1000);
  absences.look([], new Set(), 2000);
  absences.look(['a'], new Set(), 3000);
  assert.equal(absences.since('a'), 3000);
});
