import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CLOUD_IMAGE_KEYS } from '../src/gce-module.ts';

const filters = (keys: object): readonly string[] =>
  CLOUD_IMAGE_KEYS.filters({ name: 'debian', ...keys }).map(({ name, values }) => `${name}=${values.join()}`);

test('nodepool’s image-family becomes a filter, in our own project or another one', () => {
  assert.deepEqual(filters({ 'image-family': 'debian-ci' }), ['property:family=debian-ci']);
  assert.deepEqual(filters({ 'image-family': 'debian-13', 'image-project': 'debian-cloud' }), [
    'property:family=debian-13',
    'owner=debian-cloud',
  ]);
  assert.deepEqual(filters({ 'image-family': null }), []);
});

test('an image in Compute Engine must match a family and a project, and filters with the same keys', () => {
  const family = { name: 'property:family', values: ['debian-ci', 'debian-13'] };
  const owner = { name: 'owner', values: ['self', 'debian-cloud'] };
  const keys = { 'image-family': 'debian-13', 'image-project': 'debian-cloud' };
  assert.deepEqual(filters({ ...keys, 'image-filters': [family, owner] }), [
    'property:family=debian-13',
    'owner=debian-cloud',
  ]);
  const self = { name: 'owner', values: ['self'] };
  assert.throws(() => filters({ ...keys, 'image-filters': [self] }), /"owner" must be "self", and also/);
});

test('an image in Compute Engine must match both the family and the filters', () => {
  const filter = { name: 'property:team', values: ['ci', 'qa'] };
  assert.deepEqual(filters({ 'image-family': 'debian-ci', 'image-filters': [filter] }), [
    'property:team=ci,qa',
    'property:family=debian-ci',
  ]);
});
