import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readSettings } from '@nodepool-builder/image-builder/internal';
import { S3_MODULE } from '../src/s3-module.ts';
import { S3_SETTINGS, type S3Entry } from '../src/s3-settings.ts';

function problemsOf(settings: Partial<S3Entry>): readonly string[] {
  const entry = { ...readSettings(S3_SETTINGS, {}, (path) => path), name: 'store', images: [], ...settings };
  return Array.from(S3_MODULE.check?.(entry) ?? [], ({ reason }) => reason);
}

test('an S3 provider needs a bucket', () => {
  assert.deepEqual(problemsOf({}), ['lacks the key "bucket-name"']);
  assert.deepEqual(problemsOf({ 'bucket-name': 'images' }), []);
});
