import assert from 'node:assert/strict';
import { test } from 'node:test';
import { imageLabels, imageResourceName, labelValue } from '../src/image-labels.ts';

const REQUEST = {
  uploadId: 'ci/0000000001',
  imageId: 'debian-0000000001',
  imageName: 'Debian 13',
  file: { format: 'raw', path: '/images/debian.raw', size: 1024 },
} as const;

test('names and labels for Compute Engine have only valid characters, and stay distinct', () => {
  for (const externalName of ['Debian_13', 'debian-13-', '13', 'x'.repeat(200), 'ü']) {
    assert.match(imageResourceName({ ...REQUEST, externalName }), /^[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?$/);
  }
  const names = ['debian.13', 'debian_13', 'debian-13'].map((externalName) =>
    imageResourceName({ ...REQUEST, externalName }),
  );
  assert.equal(new Set(names).size, 3);
  for (const [key, value] of Object.entries(imageLabels('CI cloud', REQUEST, { Team: 'Ä' }))) {
    assert.match(key, /^[a-z][a-z0-9_-]{0,62}$/);
    assert.match(value, /^[a-z0-9_-]{0,63}$/);
  }
  assert.equal(labelValue('debian-13'), 'debian-13');
  assert.notEqual(labelValue('Debian'), labelValue('debian'));
});
