import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chooseFlavor } from '../../src/instance/launch-instance.ts';

const FLAVORS = [
  { id: '1', name: 'm1.large', ram: 8192 },
  { id: '2', name: 'm1.small', ram: 2048 },
  { id: '3', name: 'p1.small', ram: 2048 },
  { id: '4', name: 'p1.medium', ram: 4096 },
];

const CHOICES = [
  { minRam: 0, nameFilter: '', chosen: '2' },
  { minRam: 2048, nameFilter: '', chosen: '2' },
  { minRam: 2049, nameFilter: '', chosen: '4' },
  { minRam: 2048, nameFilter: 'p1', chosen: '3' },
  { minRam: 4096, nameFilter: 'm1', chosen: '1' },
  { minRam: 8193, nameFilter: '', chosen: undefined },
  { minRam: 0, nameFilter: 'P1', chosen: undefined },
] as const;

for (const { chosen, ...wish } of CHOICES) {
  test(`the smallest flavor with ${wish.minRam} MiB and "${wish.nameFilter}" is ${chosen}`, () => {
    assert.equal(chooseFlavor(FLAVORS, wish)?.id, chosen);
  });
}
