import assert from 'node:assert/strict';
import { test } from 'node:test';
import { dibArguments, elementsOf } from '../../src/dib/arguments.ts';
import type { ImageFormat } from '../../src/index.ts';
import { withCode } from '../with-code.ts';

function argumentsFor(
  formats: readonly ImageFormat[],
  elements: string | readonly string[] = 'debian vm',
): string[] {
  return dibArguments({ elements }, formats, '/images/debian-1');
}

test('the arguments are those that nodepool has always given', () => {
  assert.deepEqual(argumentsFor(['qcow2']), [
    '-x',
    '-t',
    'qcow2',
    '--no-tmpfs',
    '--qemu-img-options',
    'compat=0.10',
    '-o',
    '/images/debian-1',
    'debian',
    'vm',
  ]);
});

const TYPES: readonly (readonly [formats: readonly ImageFormat[], types: string, hasOptions: boolean])[] = [
  [['qcow2', 'raw', 'vhd'], 'qcow2,raw,vhd', true],
  [['raw'], 'raw', false],
  // The options of qcow2 would go to these as well, and qemu-img would refuse them.
  [['qcow2', 'vmdk'], 'qcow2,vmdk', false],
  [['vhdx', 'vdi', 'vpc', 'qcow2'], 'vhdx,vdi,vpc,qcow2', false],
  [['qcow2', 'squashfs', 'tgz'], 'squashfs,qcow2,tgz', true],
];

for (const [formats, types, hasOptions] of TYPES) {
  test(`for ${formats.join(', ')} the types are ${types}`, () => {
    const args = argumentsFor(formats);
    assert.equal(args[args.indexOf('-t') + 1], types);
    assert.equal(args.includes('--qemu-img-options'), hasOptions);
  });
}

const OPTIONS: readonly (readonly [
  options: string,
  formats: readonly ImageFormat[],
  expected: readonly string[],
])[] = [
  ['compat=1.1,cluster_size=2M', ['qcow2'], ['--qemu-img-options', 'compat=1.1,cluster_size=2M']],
  ['subformat=streamOptimized', ['vmdk'], ['--qemu-img-options', 'subformat=streamOptimized']],
  ['', ['qcow2'], []],
];

for (const [qemuImgOptions, formats, expected] of OPTIONS) {
  test(`with the options "${qemuImgOptions}" for ${formats.join(', ')} nodepool's are left out`, () => {
    const args = dibArguments({ 'qemu-img-options': qemuImgOptions }, formats, '/images/debian-1');
    assert.deepEqual(args.slice(args.indexOf('--no-tmpfs') + 1, args.indexOf('-o')), expected);
  });
}

test('elements are a list, words of a string, or none', () => {
  assert.deepEqual(elementsOf({ elements: ['one two', 'three'] }), ['one two', 'three']);
  assert.deepEqual(elementsOf({ elements: `'one two' three` }), ['one two', 'three']);
  assert.deepEqual(elementsOf({}), []);
});

test('elements with an open quote are refused', () => {
  assert.throws(() => argumentsFor(['raw'], `debian 'vm`), withCode('invalid-configuration'));
});
