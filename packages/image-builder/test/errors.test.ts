import assert from 'node:assert/strict';
import { test } from 'node:test';
import { IMAGE_ERRORS } from '../src/errors.ts';
import { ImageError, type ImageErrorCode } from '../src/index.ts';

test('an image error’s code determines whether it is retriable', () => {
  for (const [code, { retriable }] of Object.entries(IMAGE_ERRORS)) {
    assert.equal(new ImageError(code as ImageErrorCode, 'message').retriable, retriable, code);
  }
});

test('an image error keeps its cause', () => {
  const cause = new Error('the reason');
  assert.equal(new ImageError('disk-full', 'message', { cause }).cause, cause);
});
