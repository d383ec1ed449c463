import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type FinishedUpload,
  UPLOAD_PREDICATE,
  uploadFactsOf,
  uploadStatement,
} from '../src/upload-statement.ts';
import { provenanceFailure } from './provenance-failure.ts';
import { NOW } from './site-fixture.ts';

const UPLOAD: FinishedUpload = {
  'image-id': 'debian-1',
  'image-name': 'debian',
  provider: 'cloud',
  'provider-type': 'openstack',
  region: 'RegionOne',
  'upload-id': 'upload-1',
  'external-id': '7d1f',
  format: 'qcow2',
  sha256: 'a'.repeat(64),
  'reported-digests': { sha512: 'f'.repeat(128) },
  directory: '/images',
};

test('an upload’s statement links a file to an image in a provider', () => {
  const statement = uploadStatement(UPLOAD, NOW, 'e'.repeat(64));
  assert.deepEqual(statement, {
    subjects: [{ name: 'debian-1.qcow2', sha256: 'a'.repeat(64) }],
    predicateType: 'https://nodepool-builder.dev/upload/v1',
    predicate: {
      provider: 'cloud',
      'provider-type': 'openstack',
      region: 'RegionOne',
      'image-name': 'debian',
      'upload-id': 'upload-1',
      'external-id': '7d1f',
      'image-id': 'debian-1',
      'uploaded-on': NOW.toISOString(),
      'reported-digests': { sha512: 'f'.repeat(128) },
      'build-digest': 'e'.repeat(64),
    },
  });
  assert.deepEqual(uploadFactsOf(statement), {
    ...(statement.predicate as object),
    fileName: 'debian-1.qcow2',
    sha256: 'a'.repeat(64),
  });
});

test('an upload’s statement says that the provider has converted the file', () => {
  const statement = uploadStatement({ ...UPLOAD, converted: true }, NOW, undefined);
  assert.equal((statement.predicate as { converted?: boolean }).converted, true);
  assert.equal(uploadFactsOf(statement)?.converted, true);
});

test('an upload’s statement that is not valid is rejected', () => {
  const statement = uploadStatement(UPLOAD, NOW, undefined);
  const predicate = statement.predicate as object;
  assert.equal(uploadFactsOf(statement)?.['build-digest'], undefined);
  for (const [change, words] of [
    [{ predicate: { ...predicate, 'external-id': 7 } }, 'predicate.external-id is not a string'],
    [{ predicate: { ...predicate, 'uploaded-on': 'today' } }, 'predicate.uploaded-on is not a time'],
    [{ subjects: [...statement.subjects, ...statement.subjects] }, 'exactly one subject'],
  ] as const) {
    assert.throws(
      () => uploadFactsOf({ ...statement, ...change }),
      provenanceFailure('statement-invalid', words),
    );
  }
  assert.equal(uploadFactsOf({ ...statement, predicateType: `${UPLOAD_PREDICATE}.1` }), undefined);
});
