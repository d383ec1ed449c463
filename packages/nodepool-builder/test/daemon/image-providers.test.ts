import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DirectoryProvider } from '@nodepool-builder/image-builder';
import { OpenStackProvider } from '@nodepool-builder/provider-openstack';
import { SILENT } from '../../../provider-openstack/test/fixtures/silent-logger.ts';
import { IMAGE_PROVIDERS } from '../../src/daemon/image-providers.ts';

test('directory is there, and takes what it is given', () => {
  const provider = IMAGE_PROVIDERS.directory?.({ name: 'pool', formats: ['raw'], directory: '/srv/images' });
  assert.ok(provider instanceof DirectoryProvider);
  assert.deepEqual([provider.name, provider.formats], ['pool', ['raw']]);
});

test('openstack is there, and wants a cloud', () => {
  const openstack = { settings: () => Promise.reject(new Error('not asked')), logger: SILENT };
  const provider = IMAGE_PROVIDERS.openstack?.({ name: 'cloud', formats: ['qcow2'], openstack });
  assert.ok(provider instanceof OpenStackProvider);
  assert.deepEqual([provider.name, provider.formats], ['cloud', ['qcow2']]);
  assert.throws(
    () => IMAGE_PROVIDERS.openstack?.({ name: 'cloud', formats: ['qcow2'] }),
    /cloud .* has no cloud/,
  );
});
