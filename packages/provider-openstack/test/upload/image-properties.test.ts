import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ImageFormat, UploadRequest } from '@nodepool-builder/image-builder';
import { IMAGE_READER } from '../../src/glance-image.ts';
import { OPENSTACK_MODULE } from '../../src/index.ts';
import {
  checksumProperties,
  imageProperties,
  missingProperties,
  unprotected,
} from '../../src/upload/image-properties.ts';

/** Read-only and reserved properties in Glance's schema of an image. */
const GLANCE_SETS = [
  'id',
  'status',
  'checksum',
  'os_hash_algo',
  'os_hash_value',
  'size',
  'virtual_size',
  'created_at',
  'updated_at',
  'direct_url',
  'self',
  'file',
  'schema',
  'stores',
  'locations',
  'location',
  'deleted',
  'deleted_at',
  'os_glance_import_task',
];

function request(metadata: Record<string, string> = {}, format: ImageFormat = 'qcow2'): UploadRequest {
  const file = { format, path: `/images/0001.${format}`, size: 1 };
  return {
    uploadId: 'u1',
    imageId: '0001',
    imageName: 'debian',
    externalName: 'template-debian',
    file,
    metadata,
  };
}

test('an image has its build’s, provider’s and upload’s properties', () => {
  const properties = imageProperties({ provider: 'cloud', request: request({ os: 'debian' }), vendor: {} });
  assert.deepEqual(properties, {
    name: 'template-debian',
    disk_format: 'qcow2',
    container_format: 'bare',
    visibility: 'private',
    os: 'debian',
    nodepool_provider_name: 'cloud',
    nodepool_build_id: '0001',
    nodepool_upload_id: 'u1',
    nodepool_image_name: 'debian',
  });
});

test('all VHD formats are vhd in Glance, in shade’s container format', () => {
  for (const format of ['vhd', 'vpc', 'vhd-fixed'] as const) {
    const { disk_format, container_format } = imageProperties({
      provider: 'cloud',
      request: request({}, format),
      vendor: {},
    });
    assert.deepEqual([disk_format, container_format], ['vhd', 'ovf']);
  }
});

test('image metadata has Glance’s types and overrides the vendor and the defaults', () => {
  const metadata = {
    min_disk: '10',
    min_ram: '2048',
    tags: 'ci, debian,',
    protected: 'True',
    os_hidden: 'true',
    vm_mode: 'xen',
    visibility: 'shared',
    name: 'not this',
    nodepool_upload_id: 'nor this',
  };
  const properties = imageProperties({
    provider: 'cloud',
    request: request(metadata),
    vendor: { vm_mode: 'hvm', xenapi_use_agent: 'False' },
  });
  const { min_disk, min_ram, tags, vm_mode, xenapi_use_agent, visibility, name } = properties;
  assert.deepEqual(
    { min_disk, min_ram, tags, vm_mode, xenapi_use_agent, visibility, name },
    {
      min_disk: 10,
      min_ram: 2048,
      tags: ['ci', 'debian'],
      vm_mode: 'xen',
      xenapi_use_agent: 'False',
      visibility: 'shared',
      name: 'template-debian',
    },
  );
  assert.deepEqual(
    [properties.protected, properties.os_hidden, properties.nodepool_upload_id],
    [true, true, 'u1'],
  );
  assert.ok(!('protected' in unprotected(properties)));
});

const REFUSED: readonly (readonly [name: string, value: string, words: string])[] = [
  ['min_disk', '10 GB', 'cannot be "10 GB"; write a whole number of GB'],
  ['min_ram', '-1', 'cannot be "-1"; write a whole number of MB'],
  ['protected', 'perhaps', 'cannot be "perhaps"; write true or false'],
  ['os_hidden', '2', 'cannot be "2"; write true or false'],
  ['visibility', 'all', 'cannot be "all"; write community, private, public, shared'],
  ...GLANCE_SETS.map((name) => [name, 'x', 'can only be set by Glance; remove it'] as const),
];

test('image metadata that Glance would reject causes an error that names the property', () => {
  for (const [name, value, words] of REFUSED) {
    assert.throws(
      () => imageProperties({ provider: 'cloud', request: request({ [name]: value }), vendor: {} }),
      { code: 'invalid-settings', message: `meta of image debian: ${name} ${words}` },
    );
  }
});

test('the configuration reports metadata that Glance would reject, and metadata without effect', () => {
  const meta = {
    name: 'x',
    disk_format: 'raw',
    status: 'active',
    min_disk: 'big',
    os_hidden: 'yes please',
    a: 'b',
  };
  const entry = { name: 'cloud', rate: 1, 'upload-retry-timeout': 0, images: [{ name: 'debian', meta }] };
  const diagnostics = [...(OPENSTACK_MODULE.check?.(entry) ?? [])];
  assert.deepEqual(
    diagnostics.map(({ pointer, severity }) => [pointer, severity]),
    [
      ['/images/0/meta/name', 'warning'],
      ['/images/0/meta/disk_format', 'warning'],
      ['/images/0/meta/status', 'job-error'],
      ['/images/0/meta/min_disk', 'job-error'],
      ['/images/0/meta/os_hidden', 'job-error'],
    ],
  );
});

test('image digests have openstacksdk’s and shade’s property names', () => {
  assert.deepEqual(checksumProperties(request(), { md5: 'm', sha256: 's' }), {
    'owner_specified.openstack.md5': 'm',
    'owner_specified.openstack.sha256': 's',
    'owner_specified.openstack.object': 'images/template-debian',
    'owner_specified.shade.md5': 'm',
    'owner_specified.shade.sha256': 's',
    'owner_specified.shade.object': 'images/template-debian',
  });
});

test('an absent or different image property counts as missing, and the order of tags is ignored', () => {
  const image = IMAGE_READER.check({
    id: '1',
    status: 'active',
    created_at: '2026-01-01T00:00:00Z',
    name: 'n',
    tags: ['b', 'a'],
    min_disk: 0,
  });
  assert.deepEqual(missingProperties(image, { name: 'n', tags: ['a', 'b'] }), {});
  assert.deepEqual(missingProperties(image, { name: 'm', tags: ['a'], min_disk: 1, os: 'x' }), {
    name: 'm',
    tags: ['a'],
    min_disk: 1,
    os: 'x',
  });
});
