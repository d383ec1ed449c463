import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { nearestName } from '../src/nearest-name.ts';

const KNOWN = [
  'name',
  'type',
  'rate',
  'zone',
  'directory',
  'image-type',
  'bandwidth-limit',
  'debian-minimal',
];

describe('the nearest name', () => {
  for (const [name, nearest] of [
    ['zome', 'zone'],
    ['nam', 'name'],
    ['tpye', 'type'],
    ['Type', 'type'],
    ['directroy', 'directory'],
    ['image_type', 'image-type'],
    ['bandwith-limits', 'bandwidth-limit'],
    ['debain-minmal', undefined],
    ['debain-minimal', 'debian-minimal'],
  ] as const) {
    it(`the nearest name to "${name}" is ${nearest ?? 'none, after three edits'}`, () => {
      assert.equal(nearestName(name, KNOWN), nearest);
    });
  }

  for (const name of ['path', 'host', 'id', '', 'url', 'zzzzzz']) {
    it(`the nearest name to "${name}" is none, as too few letters match`, () => {
      assert.equal(nearestName(name, KNOWN), undefined);
    });
  }
});
