import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkImageId, imageIdFault, MAX_IMAGE_ID_BYTES } from '../src/image-id.ts';
import { withCode } from './with-code.ts';

test('ids as nodepool and Zuul make them are fine', () => {
  for (const id of [
    '1',
    '0000000042',
    'debian-0000000001',
    'a1b2c3d4e5f60718293a4b5c6d7e8f90',
    'ubuntu-22.04-7',
  ]) {
    checkImageId(id);
  }
});

const REFUSED = [
  ['', /is empty/],
  ['a/b', /contains a "\/"/],
  ['../a', /contains a "\/"/],
  ['a..b', /contains "\.\."/],
  ['.hidden', /begins with a "\."/],
  ['-rf', /begins with a "-"/],
  ['a b', /white space/],
  ['a\0b', /control character/],
  ['a\nb', /white space/],
  ['x'.repeat(MAX_IMAGE_ID_BYTES + 1), /longer than/],
  ['ä'.repeat(MAX_IMAGE_ID_BYTES / 2 + 1), /longer than/],
] as const;

for (const [id, message] of REFUSED) {
  test(`${JSON.stringify(id.slice(0, 20))} is refused`, () => {
    assert.throws(() => checkImageId(id), withCode('invalid-image-id', message));
  });
}

test('what is not a string is refused', () => {
  for (const id of [1, null, undefined, ['1']])
    assert.throws(() => checkImageId(id), withCode('invalid-image-id'));
});

test('the longest id leaves room for the longest companion of its files', () => {
  const id = 'x'.repeat(MAX_IMAGE_ID_BYTES);
  assert.equal(imageIdFault(id), undefined);
  assert.equal(`${id}.vhd-fixed.sha256`.length, 255);
});
