import assert from 'node:assert/strict';
import { test } from 'node:test';
import { externalIdOf, isNamedBy, S3Keys } from '../src/s3-keys.ts';

const IMAGE = { uploadId: 'u1', imageId: 'debian-1', imageName: 'debian', format: 'raw' } as const;

test('uploads of one image to S3 have different keys', () => {
  const externalId = externalIdOf('store', IMAGE);
  assert.match(externalId, /^debian-debian-1-[0-9a-f]{8}\.raw$/);
  assert.notEqual(externalId, externalIdOf('store', { ...IMAGE, uploadId: 'u2' }));
  assert.ok(isNamedBy('u1', externalId));
  assert.ok(!isNamedBy('u2', externalId));
  assert.throws(() => externalIdOf('store', { ...IMAGE, imageName: 'a/b' }), { code: 'provider-refused' });
});

test('an S3 provider’s keys all begin with its prefix and a slash', () => {
  const externalId = externalIdOf('store', IMAGE);
  for (const prefix of ['ci', 'ci/']) {
    const keys = new S3Keys(prefix);
    assert.equal(keys.image(externalId), `ci/${externalId}`);
    assert.equal(keys.externalId(keys.manifest(externalId)), externalId);
    assert.equal(keys.externalId(keys.latest('debian', 'raw')), undefined);
    assert.equal(keys.record('a/b'), 'ci/.nodepool-builder/a%2Fb.json');
  }
  assert.equal(new S3Keys().image(externalId), externalId);
});
