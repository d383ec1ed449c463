import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CLOUD_IMAGE_KEYS } from '../src/cloud-image-keys.ts';

const filters = (keys: object): readonly string[] =>
  CLOUD_IMAGE_KEYS.filters({ name: 'debian', ...keys }).map(({ name, values }) => `${name}=${values.join()}`);

test('an image in Azure must match all conditions of nodepool’s image-filter', () => {
  const filter = { name: 'debian-12', location: 'West Europe', tags: { team: 'ci', size: 2 } };
  assert.deepEqual(filters({ 'image-filter': filter }), [
    'name=debian-12',
    'property:location=westeurope',
    'property:team=ci',
    'property:size=2',
  ]);
  assert.deepEqual(filters({ 'image-filters': [{ name: 'tag', values: ['a', 'b'] }] }), ['tag=a,b']);
  assert.deepEqual(filters({ 'image-filter': null }), []);
});

test('an image in Azure must match image-filter, and image-filters with the same keys', () => {
  const conditions = [
    { name: 'name', values: ['debian-*', 'ubuntu-*'] },
    { name: 'property:team', values: ['qa', 'ci'] },
  ];
  const filter = { name: 'debian-12', tags: { team: 'ci' } };
  assert.deepEqual(filters({ 'image-filter': filter, 'image-filters': conditions }), [
    'name=debian-12',
    'property:team=ci',
  ]);
  const location = { location: 'West Europe', tags: { location: 'rack 1' } };
  assert.throws(() => filters({ 'image-filter': location }), /"property:location" must be "westeurope", and/);
});

test('nodepool’s shared-gallery-image becomes filters for a gallery’s image definition', () => {
  const image = { 'gallery-name': 'ci', name: 'debian' };
  assert.deepEqual(filters({ 'shared-gallery-image': image }), [
    'property:gallery=ci',
    'property:definition=debian',
  ]);
  assert.deepEqual(
    filters({ 'shared-gallery-image': { ...image, version: '1.2.3' } }).at(-1),
    'property:version=1.2.3',
  );
});

test('the key image-reference is rejected, as other publishers’ images in Azure cannot be searched', () => {
  const reference = { publisher: 'Debian', offer: 'debian-12', sku: '12', version: 'latest' };
  assert.throws(
    () => filters({ 'image-reference': reference }),
    /image-reference refers to another publisher's image/,
  );
  assert.throws(() => filters({ 'image-filter': { name: 'debian-*' } }), /does not support wildcards/);
});
