import assert from 'node:assert/strict';
import { test } from 'node:test';
import { imageImport, instanceSettings, OPENSTACK_MODULE } from '../src/openstack-module.ts';

test('the key image-import selects the import method', () => {
  assert.equal(imageImport({}), undefined);
  assert.deepEqual(imageImport({ 'image-import': 'glance-direct' }), { method: 'glance-direct' });
  const baseUrl = 'https://b.example.org/i/';
  assert.deepEqual(imageImport({ 'image-import': 'web-download', 'image-import-url': baseUrl }), {
    method: 'web-download',
    baseUrl,
  });
});

test('networks for instances are read as in nodepool', () => {
  const networks = [
    { name: 'Ext-Net', public: true },
    { 'net-id': 6365 },
    { 'net-label': 'default' },
    'plain',
  ];
  assert.deepEqual(instanceSettings({ networks, pool: 4, 'ipv6-preferred': true }), {
    networks: ['Ext-Net', '6365', 'default', 'plain'],
    pool: '4',
    ipv6Preferred: true,
  });
  const defaults = { networks: undefined, pool: undefined, ipv6Preferred: false };
  assert.deepEqual(instanceSettings({}), defaults);
  assert.deepEqual(instanceSettings({ networks: null, pool: '' }), defaults);
});

test('an image in Glance must match image-name, and image-filters with names', () => {
  const [name, ...others] = ['Debian *', 'Ubuntu *'].map((value) => ({ name: 'name', values: [value] }));
  const image = { name: 'debian', 'image-name': 'Debian 12', 'image-filters': [name, ...others] };
  const { cloudImages } = OPENSTACK_MODULE.images ?? {};
  assert.deepEqual(cloudImages?.filters(image as never), [{ name: 'name', values: ['Debian 12'] }]);
  assert.throws(() => cloudImages?.filters({ ...image, 'image-filters': others }), {
    code: 'invalid-filter',
  });
});
