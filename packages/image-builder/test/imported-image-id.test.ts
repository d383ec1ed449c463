import assert from 'node:assert/strict';
import { test } from 'node:test';
import { importedImageId, parseImportedImageId } from '../src/imported-image-id.ts';

const UUID = '0123456789abcdef0123456789abcdef';
const ENDED = Date.parse('2025-11-22T01:01:01Z');

test('an image-id names the image, when the build ended, and the build', () => {
  const id = importedImageId({ image: 'debian-13', uuid: UUID, endTime: ENDED });
  assert.equal(id, `debian-13-1763773261-${UUID}`);
  assert.deepEqual(parseImportedImageId(id), { image: 'debian-13', uuid: UUID, endTime: ENDED });
});

test('the image-ids of others name no build', () => {
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
