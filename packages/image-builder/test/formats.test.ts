import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withCode } from '../../../test/fixtures/with-code.ts';
import { checkFormats, FORMAT_NAMES, formatOfExtension, formatRow, isImageFormat } from '../src/formats.ts';

test('the format for each file extension is found', () => {
  for (const format of FORMAT_NAMES) assert.equal(formatOfExtension(formatRow(format).extension), format);
});

test('other file extensions have no format', () => {
  for (const extension of ['md5', 'sha256', 'd', 'log', '', 'QCOW2', 'qcow2-new', 'vhd-intermediate']) {
    assert.equal(formatOfExtension(extension), undefined, extension);
  }
});

test('the squashfs file of diskimage-builder ends in .squash', () => {
  assert.equal(formatOfExtension('squash'), 'squashfs');
});

test('only a format’s name is accepted as a format', () => {
  assert.ok(isImageFormat('qcow2'));
  for (const name of ['toString', 'squash', '', undefined, 7]) assert.ok(!isImageFormat(name), String(name));
});

test('an unknown format name is rejected with the list of known ones', () => {
  checkFormats(['raw', 'vhd']);
  assert.throws(() => checkFormats(['raw', 'qcow3']), withCode('format-unknown', /"qcow3".*qcow2, raw/));
});
