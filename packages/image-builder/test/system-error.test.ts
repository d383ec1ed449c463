import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { withCode } from '../../../test/fixtures/with-code.ts';
import { ImageError } from '../src/index.ts';
import { asImageError, errnoOf, unlessMissing } from '../src/system-error.ts';

function systemError(code: string): Error {
  return Object.assign(new Error(`${code}: something`), { code });
}

const CODES = [
  ['ENOSPC', 'disk-full'],
  ['EDQUOT', 'disk-full'],
  ['EACCES', 'directory-not-usable'],
  ['EROFS', 'directory-not-usable'],
  ['ENOENT', 'directory-not-usable'],
] as const;

for (const [errno, code] of CODES) {
  test(`the system error ${errno} becomes ${code}, and stays the cause`, () => {
    const cause = systemError(errno);
    const error = asImageError(cause, 'writing the manifest');
    assert.ok(withCode(code, /^writing the manifest failed: /)(error));
    assert.equal((error as ImageError).cause, cause);
  });
}

test('a system error that the administrator cannot correct is returned unchanged', () => {
  for (const error of [
    new TypeError('a defect'),
    systemError('EIO'),
    'text',
    new ImageError('disk-full', 'x'),
  ]) {
    assert.equal(asImageError(error, 'anything'), error);
  }
});

test('a missing file is read as undefined, and any other failure is thrown', async () => {
  assert.equal(await unlessMissing(readFile('/no/such/file')), undefined);
  await assert.rejects(unlessMissing(readFile('/')), (error) => errnoOf(error) === 'EISDIR');
});
