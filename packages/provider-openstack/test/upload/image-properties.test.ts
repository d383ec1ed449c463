import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ImageFormat, UploadRequest } from '@nodepool-builder/image-builder';
import { IMAGE_READER } from '../../src/glance-image.ts';
import {
  checksumProperties,
  imageProperties,
  missingProperties,
  unprotected,
} from '../../src/upload/image-properties.ts';

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

test('an image has the properties of its build, provider and upload', () => {
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

test('all VHD formats are vhd in Glance, in the container format of shade', () => {
  for (const format of ['vhd', 'vpc', 'vhd-fixed'] as const) {
    const { disk_format, container_format } = imageProperties({
      provider: 'cloud',
      request: request({}, format),
      vendor: {},
    });
    assert.deepEqual([disk_format, container_format], ['vhd', 'ovf']);
  }
});

test('metadata has the types of Glance and overrides the vendor and the defaults', () => {
  const metadata = {
    min_disk: '10',
    min_ram: '2048',
    tags: 'ci, debian,',
    protected: 'True',
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
  assert.deepEqual([properties.protected, properties.nodepool_upload_id], [true, 'u1']);
  assert.ok(!('protected' in unprotected(properties)));
});

test('invalid metadata is an error that names the property', () => {
  for (const [name, value] of [
    ['min_disk', '10 GB'],
    ['min_ram', '-1'],
    ['protected', 'perhaps'],
  ] as const) {
    assert.throws(
      () => imageProperties({ provider: 'cloud', request: request({ [name]: value }), vendor: {} }),
      { code: 'invalid-settings', message: new RegExp(`meta of image debian: ${name} cannot be "${value}"`) },
    );
  }
});

test('digests have the property names of openstacksdk and of shade', () => {
  assert.deepEqual(checksumProperties(request(), { md5: 'm', sha256: 's' }), {
    'owner_specified.openstack.md5': 'm',
    'owner_specified.openstack.sha256': 's',
    'owner_specified.openstack.object': 'images/template-debian',
    'owner_specified.shade.md5': 'm',
    'owner_specified.shade.sha256': 's',
    'owner_specified.shade.object': 'images/template-debian',
  });
});

test('missing properties are absent or different ones; tags have no order', () => {
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
