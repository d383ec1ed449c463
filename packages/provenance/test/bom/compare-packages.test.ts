import assert from 'node:assert/strict';
import { test } from 'node:test';
import { comparePackages } from '../../src/bom/compare-packages.ts';
import type { Package } from '../../src/types.ts';

function debian(name: string, version: string, architecture = 'amd64'): Package {
  const purl = `pkg:deb/debian/${name}@${version}?arch=${architecture}`;
  return { name, version, architecture, type: 'deb', purl };
}

function text({ name, version, architecture }: Package): string {
  return `${name} ${version} ${architecture}`;
}

/** Formats changes: `+name version architecture`. */
function lines(before: readonly Package[], after: readonly Package[]): string[] {
  const { added, removed, changed } = comparePackages(before, after);
  return [
    ...added.map((one) => `+${text(one)}`),
    ...removed.map((one) => `-${text(one)}`),
    ...changed.map((change) => `${text(change.before)} > ${text(change.after)}`),
  ];
}

test('equal package lists have no changes', () => {
  const packages = [debian('curl', '1'), debian('bash', '2')];
  assert.deepEqual(lines(packages, packages.toReversed()), []);
  assert.deepEqual(lines([], []), []);
});

test('added, removed and changed packages are listed in the order of their names', () => {
  const before = [debian('zsh', '1'), debian('curl', '1'), debian('nano', '5'), debian('apt', '1')];
  const after = [debian('vim', '9'), debian('curl', '2'), debian('apt', '1.1'), debian('git', '2')];
  const expected = [
    '+git 2 amd64',
    '+vim 9 amd64',
    '-nano 5 amd64',
    '-zsh 1 amd64',
    'apt 1 amd64 > apt 1.1 amd64',
    'curl 1 amd64 > curl 2 amd64',
  ];
  assert.deepEqual(lines(before, after), expected);
  assert.deepEqual(lines(before.toReversed(), after.toReversed()), expected);
});

test('one of several versions of a package, such as a kernel, is added or removed', () => {
  const before = [debian('kernel', '5.1'), debian('kernel', '5.2')];
  const after = [debian('kernel', '5.2'), debian('kernel', '5.3')];
  assert.deepEqual(lines(before, after), ['+kernel 5.3 amd64', '-kernel 5.1 amd64']);
  assert.deepEqual(lines(before.slice(0, 1), after), [
    '+kernel 5.2 amd64',
    '+kernel 5.3 amd64',
    '-kernel 5.1 amd64',
  ]);
});

test('a package’s architectures are compared separately', () => {
  const before = [debian('libc6', '1'), debian('libc6', '1', 'i386')];
  const after = [debian('libc6', '2'), debian('libc6', '2', 'i386')];
  assert.deepEqual(lines(before, after), ['libc6 1 amd64 > libc6 2 amd64', 'libc6 1 i386 > libc6 2 i386']);
  assert.deepEqual(lines(before, after.slice(0, 1)), ['-libc6 1 i386', 'libc6 1 amd64 > libc6 2 amd64']);
});

test('a package whose architecture changes counts as one change', () => {
  assert.deepEqual(lines([debian('tzdata', '1')], [debian('tzdata', '2', 'all')]), [
    'tzdata 1 amd64 > tzdata 2 all',
  ]);
});

test('packages with the same name and different types are different packages', () => {
  const { added, removed, changed } = comparePackages(
    [debian('bash', '1')],
    [{ name: 'bash', version: '2', type: 'rpm', purl: 'pkg:rpm/fedora/bash@2' }],
  );
  assert.deepEqual([added.length, removed.length, changed.length], [1, 1, 0]);
});

test('a package that is listed twice counts once in a comparison', () => {
  assert.deepEqual(lines([debian('curl', '1'), debian('curl', '1')], [debian('curl', '2')]), [
    'curl 1 amd64 > curl 2 amd64',
  ]);
});
