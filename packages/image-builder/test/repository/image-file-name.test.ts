import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseImageFileName } from '../../src/repository/image-file-name.ts';

test('the id is what stands before the last dot', () => {
  assert.deepEqual(parseImageFileName('0000000042.qcow2'), { imageId: '0000000042', format: 'qcow2' });
  assert.deepEqual(parseImageFileName('ubuntu-22.04.raw'), { imageId: 'ubuntu-22.04', format: 'raw' });
});

for (const name of [
  '.raw',
  '.hidden.raw',
  'raw',
  'a',
  'a.d',
  'a.qcow2.md5',
  'a.qcow2-new',
  'a.RAW',
  'lost+found',
  '',
]) {
  test(`${JSON.stringify(name)} is no image file`, () => {
    assert.equal(parseImageFileName(name), undefined);
  });
}
