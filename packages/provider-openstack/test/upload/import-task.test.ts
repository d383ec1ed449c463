// Not a unit test: it takes seconds.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { CloudDouble } from '../../../../test/doubles/openstack/cloud-double.ts';
import { failsWith } from '../fixtures/fails-with.ts';
import { openProvider, uploadRequest } from '../provider-fixture.ts';

const AGAIN = "Image cannot be imported. Error code: '396'";

describe('an upload by an import task', () => {
  test('an upload by an import task creates an image with all properties, and leaves no object', async (t) => {
    const cloud = await CloudDouble.start(t);
    const provider = openProvider(t, cloud.settings(true), { formats: ['vhd'] });
    const request = await uploadRequest(t, { format: 'vhd' });
    const { externalId } = await provider.upload(request);
    const image = cloud.glance.images.get(externalId);
    assert.ok(image);
    const { name, status, size, vm_mode, xenapi_use_agent, os, nodepool_build_id } = image;
    assert.deepEqual(
      { name, status, size, vm_mode, xenapi_use_agent, os, nodepool_build_id },
      {
        name: 'template-debian',
        status: 'active',
        size: request.file.size,
        vm_mode: 'hvm',
        xenapi_use_agent: 'False',
        os: 'debian',
        nodepool_build_id: '0001',
      },
    );
    assert.equal(cloud.glance.images.size, 1);
    assert.deepEqual(cloud.swift.names, []);
  });

  test('an import task’s object has shade’s metadata and an expiry', async (t) => {
    const cloud = await CloudDouble.start(t);
    const provider = openProvider(t, cloud.settings(true), { formats: ['vhd'] });
    const request = await uploadRequest(t, { format: 'vhd', built: false });
    const headers: Record<string, unknown>[] = [];
    cloud.intercept = ({ method, path }) => {
      if (method === 'POST' && path === '/v2/tasks') {
        for (const name of cloud.swift.names) {
          const [container = '', ...rest] = name.split('/');
          headers.push({ ...cloud.swift.object(container, rest.join('/'))?.headers });
        }
      }
      return undefined;
    };
    const { externalId } = await provider.upload(request);
    const [object, segment] = headers;
    assert.equal(object?.['x-delete-after'], '86400');
    assert.equal(segment?.['x-delete-after'], '86400');
    const image = cloud.glance.images.get(externalId);
    assert.equal(object?.['x-object-meta-x-shade-md5'], image?.checksum);
    assert.equal(object?.['x-object-meta-x-shade-sha256'], image?.['owner_specified.openstack.sha256']);
  });

  test('an import task’s transient failure is retried once, and other failures cause errors', async (t) => {
    const cloud = await CloudDouble.start(t);
    const provider = openProvider(t, cloud.settings(true), {
      formats: ['vhd'],
      retry: { attempts: 1, delay: 0 },
    });
    const request = await uploadRequest(t, { format: 'vhd' });
    cloud.taskFailures.push(AGAIN);
    await provider.upload(request);
    assert.equal(tasksOf(cloud), 2);
    cloud.taskFailures.push(AGAIN, AGAIN);
    await assert.rejects(
      provider.upload({ ...request, uploadId: 'u2' }),
      failsWith('image-failed', 'cloud double: import task', 'ended with failure', '396'),
    );
    cloud.taskFailures.push('Disk is broken');
    await assert.rejects(
      provider.upload({ ...request, uploadId: 'u3' }),
      failsWith('image-failed', 'Disk is broken'),
    );
    assert.equal(cloud.glance.images.size, 1);
    assert.deepEqual(cloud.swift.names, []);
  });

  test('an import task that does not end times out, and its late image is discarded', async (t) => {
    const cloud = await CloudDouble.start(t);
    const provider = openProvider(t, cloud.settings(true), {
      formats: ['vhd'],
      retry: { attempts: 1, delay: 0 },
      uploadTimeout: 1,
    });
    cloud.intercept = ({ path }) =>
      path.startsWith('/v2/tasks/')
        ? { status: 200, body: { id: 't1', status: 'pending', result: '' } }
        : undefined;
    await assert.rejects(
      provider.upload(await uploadRequest(t, { format: 'vhd' })),
      failsWith('image-timeout', 'import task', 'has not ended after 1 s'),
    );
    assert.equal(cloud.glance.images.size, 0);
    cloud.glance.importImage({ name: 'nodepool-upload-u1' }, Buffer.from('late'));
    cloud.glance.importImage({ name: 'nodepool-upload-u2' }, Buffer.from('of another upload'));
    await provider.discard('u1');
    assert.deepEqual(
      [...cloud.glance.images.values()].map(({ name }) => name),
      ['nodepool-upload-u2'],
    );
  });

  test('image properties that an import task rejects leave neither image nor object', async (t) => {
    const cloud = await CloudDouble.start(t);
    const provider = openProvider(t, cloud.settings(true), { formats: ['vhd'] });
    cloud.intercept = ({ method }) =>
      method === 'PATCH' ? { status: 403, body: { message: 'Property vm_mode is reserved.' } } : undefined;
    await assert.rejects(
      provider.upload(await uploadRequest(t, { format: 'vhd' })),
      failsWith('forbidden', 'Property vm_mode is reserved'),
    );
    assert.equal(cloud.glance.images.size, 0);
    assert.deepEqual(cloud.swift.names, []);
  });
});

function tasksOf(cloud: CloudDouble): number {
  return cloud.requests.filter((request) => request === 'POST /v2/tasks').length;
}
