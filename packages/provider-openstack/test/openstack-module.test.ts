import assert from 'node:assert/strict';
import { test } from 'node:test';
import { imageImport, instanceSettings } from '../src/openstack-module.ts';

test('image-import selects the import method', () => {
  assert.equal(imageImport({}), undefined);
  assert.deepEqual(imageImport({ 'image-import': 'glance-direct' }), { method: 'glance-direct' });
  const baseUrl = 'https://b.example.org/i/';
  assert.deepEqual(imageImport({ 'image-import': 'web-download', 'image-import-url': baseUrl }), {
    method: 'web-download',
    baseUrl,
  });
});

test('networks of instances are read as in nodepool', () => {
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
