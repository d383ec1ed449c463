import assert from 'node:assert/strict';
import { chmodSync, chownSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryDirectory } from '../../../test/fixtures/scratch-directory.ts';
import { foreignPart } from '../src/ownership.ts';

const NEEDS_ROOT = { skip: process.geteuid?.() !== 0 && 'needs root' };
const NOBODY = 65534;

test('a file below a directory with the sticky bit is writable by no other user', (t) => {
  const directory = temporaryDirectory(t);
  chmodSync(directory, 0o1777);
  writeFileSync(join(directory, 'file'), '');
  assert.equal(foreignPart(join(directory, 'file')), undefined);
});

test('another user’s file, directory above it or link to it is reported as foreign', NEEDS_ROOT, (t) => {
  const directory = temporaryDirectory(t);
  const [sub, file, link] = ['sub', 'sub/file', 'link'].map((name) => join(directory, name)) as [
    string,
    string,
    string,
  ];
  mkdirSync(sub);
  writeFileSync(file, '');
  symlinkSync(file, link);
  chownSync(file, NOBODY, 0);
  assert.equal(foreignPart(file), `${file} belongs to user ${NOBODY}`);
  assert.equal(foreignPart(link), `${file} belongs to user ${NOBODY}`);
  chownSync(sub, NOBODY, 0);
  assert.equal(foreignPart(file), `${sub} belongs to user ${NOBODY}`);
});

test(
  'a directory that a group or every user may write to is foreign unless the group is this user’s',
  NEEDS_ROOT,
  (t) => {
    const directory = temporaryDirectory(t);
    chmodSync(directory, 0o775);
    assert.equal(foreignPart(directory), undefined);
    chownSync(directory, 0, NOBODY);
    chmodSync(directory, 0o775);
    assert.equal(foreignPart(directory), `${directory} is writable for group ${NOBODY}`);
    chmodSync(directory, 0o777);
    assert.equal(foreignPart(directory), `${directory} is writable for every user`);
  },
);
