import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileTags, imageTags, readImageTags } from '../src/image-tags.ts';

const REQUEST = {
  uploadId: 'u1',
  imageId: 'debian-0000000001',
  imageName: 'debian',
  builtAt: new Date('2026-05-01T12:00:00Z'),
};
const FILE = {
  format: 'raw',
  path: '/images/debian.raw',
  size: 1024,
  checksums: { md5: 'a', sha256: 'b' },
} as const;

test('image tags are read as they were written', () => {
  const tags = { ...imageTags('ci', REQUEST), ...fileTags(FILE), Name: 'debian' };
  assert.deepEqual(readImageTags(tags), {
    ...REQUEST,
    provider: 'ci',
    format: 'raw',
    size: 1024,
    checksums: FILE.checksums,
  });
});

test('an image without our tags is not ours, and invalid tag values are omitted', () => {
  assert.equal(readImageTags({ Name: 'debian', nodepool_build_id: 'debian-1' }), undefined);
  const tags = imageTags('ci', { uploadId: 'u1', imageId: 'debian-1', imageName: 'debian' });
  const wrong = {
    ...tags,
    nodepool_build_time: 'yesterday',
    nodepool_format: 'floppy',
    nodepool_size: 'big',
  };
  assert.deepEqual(Object.keys(readImageTags(wrong) ?? {}), ['provider', 'imageId', 'uploadId', 'imageName']);
});
