import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withCode } from '../../../test/fixtures/with-code.ts';
import {
  checkImageId,
  imageIdError,
  importedImageId,
  MAX_IMAGE_ID_BYTES,
  parseImportedImageId,
} from '../src/image-id.ts';

test('the image ids of nodepool and Zuul are valid', () => {
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
  [Buffer.from('latin\xe9', 'latin1').toString(), /bytes that are not UTF-8/],
  ['x'.repeat(MAX_IMAGE_ID_BYTES + 1), /longer than/],
  ['ä'.repeat(MAX_IMAGE_ID_BYTES / 2 + 1), /longer than/],
] as const;

for (const [id, message] of REFUSED) {
  test(`the image id ${JSON.stringify(id.slice(0, 20))} is rejected`, () => {
    assert.throws(() => checkImageId(id), withCode('invalid-image-id', message));
  });
}

test('an image id that is not a string is rejected', () => {
  for (const id of [1, null, undefined, ['1']])
    assert.throws(() => checkImageId(id), withCode('invalid-image-id'));
});

test('the longest image id is short enough for the longest file name with it', () => {
  const id = 'x'.repeat(MAX_IMAGE_ID_BYTES);
  assert.equal(imageIdError(id), undefined);
  assert.equal(`${id}.vhd-fixed.sha256`.length, 255);
});

const UUID = '0123456789abcdef0123456789abcdef';
const ENDED = Date.parse('2025-11-22T01:01:01Z');

test('an imported image’s id names the image, the end of the build, and the build', () => {
  const id = importedImageId({ image: 'debian-13', uuid: UUID, endTime: ENDED });
  assert.equal(id, `debian-13-1763773261-${UUID}`);
  assert.deepEqual(parseImportedImageId(id), { image: 'debian-13', uuid: UUID, endTime: ENDED });
});

test('other image ids do not name a Zuul build', () => {
  for (const id of [
    'debian',
    'debian-1763773261',
    `debian-${UUID}`,
    'debian-0000000042-k7f3q2xa',
    `-1-${UUID}`,
  ]) {
    assert.equal(parseImportedImageId(id), undefined, id);
  }
});
