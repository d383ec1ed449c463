import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { CloudDouble } from '../../../test/doubles/openstack/cloud-double.ts';
import { openProvider, uploadRequest } from './provider-fixture.ts';
import { openRealCloud } from './real-cloud.ts';

describe('partial uploads in a cloud', () => {
  test('partial uploads in a cloud include this provider’s incomplete images', async (t) => {
    const { settings, account, images } = await openRealCloud(t);
    const provider = openProvider(t, settings);
    const whole = await provider.upload(await uploadRequest(t));
    const glance = await account.glance();
    const createUpload = async (properties: object): Promise<string> => {
      const tags = { nodepool_build_id: '1', nodepool_image_name: 'debian' };
      const image = { disk_format: 'raw', container_format: 'bare', ...tags, ...properties };
      return (await glance.request<{ id: string }>('POST', '/images', image)).id;
    };
    await createUpload({ nodepool_provider_name: 'another', nodepool_upload_id: 'u2' });
    await createUpload({ nodepool_provider_name: 'cloud' });
    const incomplete = await createUpload({ nodepool_provider_name: 'cloud', nodepool_upload_id: 'u3' });
    const changing = await createUpload({ nodepool_provider_name: 'cloud', nodepool_upload_id: 'u4' });
    const partialUploads = await provider.listPartialUploads();
    assert.deepEqual(
      new Set(partialUploads.map(({ uploadId, subject }) => `${uploadId}: ${subject}`)),
      new Set([`u3: image ${incomplete} (queued)`, `u4: image ${changing} (queued)`]),
    );
    await glance.request(
      'PUT',
      `/images/${changing}/file`,
      {},
      { 'content-type': 'application/octet-stream' },
    );
    const removed = [];
    for (const partial of partialUploads) if (await partial.remove()) removed.push(partial.uploadId);
    assert.deepEqual(removed, ['u3']);
    const ids = (await images()).map(({ id }) => id);
    assert.ok(ids.includes(whole.externalId) && ids.includes(changing) && !ids.includes(incomplete));
  });

  test('partial uploads in a cloud include the objects of import tasks, one for each upload', async (t) => {
    const cloud = await CloudDouble.start(t);
    const provider = openProvider(t, cloud.settings(true), { formats: ['vhd'] });
    const store = cloud.settings().objectStore.endpointOverride;
    const put = async (container: string, name: string): Promise<unknown> =>
      await fetch(`${store}/${container}${name}`, { method: 'PUT', body: 'data' });
    for (const container of ['images', 'images_segments']) await put(container, '');
    await put('images', '/of-somebody');
    await put('images', '/nodepool-upload-u1');
    await put('images_segments', '/nodepool-upload-u1/000000');
    await put('images_segments', '/nodepool-upload-u2/000000');
    const [one, other, ...others] = await provider.listPartialUploads();
    assert.deepEqual([one?.uploadId, other?.uploadId, others], ['u1', 'u2', []]);
    assert.equal(one?.subject, 'object images/nodepool-upload-u1');
    assert.equal(await one?.remove(), true);
    assert.deepEqual(cloud.swift.names, ['images/of-somebody', 'images_segments/nodepool-upload-u2/000000']);
    assert.equal(await one?.remove(), false);
  });
});
