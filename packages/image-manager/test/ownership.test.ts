import assert from 'node:assert/strict';
import { test } from 'node:test';
import { buildKeyOf, imageIdOf, isOwn, OWNER, uploadIdOf } from '../src/ownership.ts';

const OURS = 'k7f3q2xa';

test('ids contain a number and the owner, and a disk image’s ids sort by number', () => {
  assert.match(OURS, OWNER);
  assert.equal(uploadIdOf(42, OURS), '0000000042-k7f3q2xa');
  assert.equal(imageIdOf('debian-12', 42, OURS), 'debian-12-0000000042-k7f3q2xa');
  assert.ok(imageIdOf('debian', 9, OURS) < imageIdOf('debian', 10, OURS));
});

test('a unique key is short, and distinct for every disk image name', () => {
  const long = 'x'.repeat(200);
  assert.equal(buildKeyOf(imageIdOf(`${long}-1`, 42, OURS)), '0000000042-k7f3q2xa');
});

for (const [id, expected] of [
  ['0000000042-k7f3q2xa', true],
  ['debian-0000000042-k7f3q2xa', true],
  ['debian-12-0000000042-k7f3q2xa', true],
  ['debian-10000000042-k7f3q2xa', true],
  ['debian-0000000042-aaaaaaaa', false],
  ['debian-0000000042-k7f3q2xa-copy', false],
  ['debian-42-k7f3q2xa', false],
  ['debian0000000042-k7f3q2xa', false],
  ['-0000000042-k7f3q2xa', false],
  ['debian-k7f3q2xa', false],
  ['debian-1', false],
  ['', false],
] as const) {
  test(`the id "${id}" ${expected ? 'carries' : 'does not carry'} our owner`, () =>
    assert.equal(isOwn(id, OURS), expected));
}
