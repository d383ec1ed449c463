import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readSettings } from '@nodepool-builder/image-builder/internal';
import { OCI_MODULE } from '../src/oci-module.ts';
import { OCI_SETTINGS } from '../src/oci-settings.ts';

function pointersOf(settings: Readonly<Record<string, string>>): readonly string[] {
  const entry = { ...readSettings(OCI_SETTINGS, settings, (path) => path), name: 'registry', images: [] };
  return Array.from(OCI_MODULE.check?.(entry) ?? [], ({ pointer }) => pointer);
}

test('the repository setting needs a registry, and the endpoint must be a URL', () => {
  assert.deepEqual(pointersOf({ repository: 'registry.example.com/ci/images' }), []);
  assert.deepEqual(pointersOf({ repository: 'Images' }), ['/repository']);
  const repository = 'registry.example.com/ci';
  assert.deepEqual(pointersOf({ repository, endpoint: 'registry.example.com' }), ['/endpoint']);
});
