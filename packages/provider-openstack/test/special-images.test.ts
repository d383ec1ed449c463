// Only in test:all: it waits for further kinds of images in Glance.
import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { UploadRequest } from '@nodepool-builder/image-builder';
import { respondsWith } from '../../../test/fixtures/fault-proxy/faults.ts';
import type { OpenStackProvider } from '../src/index.ts';
import { failsWith } from './fixtures/fails-with.ts';
import { openProvider, uploadRequest } from './provider-fixture.ts';
import { openRealCloud, type RealCloud } from './real-cloud.ts';

interface Site extends RealCloud {
  readonly provider: OpenStackProvider;
  readonly request: UploadRequest;
  /** Changes an image like another client. */
  readonly change: (id: string, properties: Readonly<Record<string, unknown>>) => Promise<void>;
}

async function openSite(t: TestContext, metadata: Readonly<Record<string, string>>): Promise<Site> {
  const cloud = await openRealCloud(t);
  const change = async (id: string, properties: Readonly<Record<string, unknown>>): Promise<void> => {
    const operations = Object.entries(properties).map(([name, value]) => ({
      op: 'add',
      path: `/${name}`,
      value,
    }));
    await (await cloud.account.glance()).request('PATCH', `/images/${id}`, operations, {
      'content-type': 'application/openstack-images-v2.1-json-patch',
    });
  };
  const request = { ...(await uploadRequest(t)), metadata };
  return { ...cloud, provider: openProvider(t, cloud.settings), request, change };
}

/** Returns the ids of all images with the tag of the upload, hidden or not. */
async function idsOf({ account }: Site): Promise<readonly string[]> {
  const glance = await account.glance();
  const pages = await Promise.all(
    ['false', 'true'].map(async (hidden) => await glance.request('GET', `/images?os_hidden=${hidden}`)),
  );
  return pages.flatMap((page) => (page as { images: { id: string }[] }).images.map(({ id }) => id));
}

describe('a protected image', () => {
  for (const shared of [false, true]) {
    test(`a protected image of our own is deleted, after a ${shared ? 'shared' : 'usual'} upload`, async (t) => {
      const site = await openSite(t, { protected: 'true' });
      const { provider, request } = site;
      const { externalId } = await provider.upload({ ...request, shared });
      assert.equal((await site.images())[0]?.protected, true);
      await provider.delete(externalId);
      assert.deepEqual(await idsOf(site), []);
    });
  }

  test('a protected image of our own is discarded with its upload', async (t) => {
    const site = await openSite(t, { protected: 'true' });
    await site.provider.upload(site.request);
    await site.provider.discard(site.request.uploadId);
    assert.deepEqual(await idsOf(site), []);
  });

  test('a failed upload’s protected image is cleaned up', async (t) => {
    const site = await openSite(t, { protected: 'true', os: 'debian' });
    const { externalId } = await site.provider.upload(site.request);
    // The image is protected, but another attempt fails.
    site.glance.inject({ method: 'PATCH' }, respondsWith(403, { body: 'no change' }));
    const again = site.provider.upload({ ...site.request, metadata: { protected: 'true', os: 'other' } });
    await assert.rejects(again, failsWith('forbidden', 'no change'));
    assert.deepEqual(await idsOf(site), [], externalId);
  });

  test('another client’s protected image stays, and the error names the flag', async (t) => {
    const site = await openSite(t, {});
    const { provider, request, change } = site;
    const { externalId } = await provider.upload(request);
    await change(externalId, { protected: true });
    const isRefused = failsWith(
      'forbidden',
      'flag "protected"',
      `openstack image set --unprotected ${externalId}`,
    );
    await assert.rejects(provider.delete(externalId), isRefused);
    await assert.rejects(provider.discard(request.uploadId), isRefused);
    assert.deepEqual(await idsOf(site), [externalId]);
  });

  test('a deletion that is rejected for another reason than protection keeps the cloud’s reason', async (t) => {
    const site = await openSite(t, {});
    const { externalId } = await site.provider.upload(site.request);
    site.glance.inject({ method: 'DELETE' }, respondsWith(409, { body: 'image is in use' }));
    await assert.rejects(site.provider.delete(externalId), failsWith('conflict', 'image is in use'));
  });
});

const VISIBLE_TO_OWNER: readonly Readonly<Record<string, string>>[] = [
  { os_hidden: 'true' },
  { os_hidden: 'True', protected: 'true' },
  { visibility: 'community' },
  { visibility: 'shared' },
  { visibility: 'community', os_hidden: 'true' },
];

describe('images with special properties', () => {
  for (const metadata of VISIBLE_TO_OWNER) {
    const title = Object.entries(metadata).map((pair) => pair.join(' '));
    for (const shared of [false, true]) {
      test(`an image with ${title.join(' and ')} is found by each list after a ${shared ? 'shared' : 'usual'} upload`, async (t) => {
        const site = await openSite(t, metadata);
        const { provider, request, settings } = site;
        const { externalId } = await provider.upload({ ...request, shared });
        assert.deepEqual(
          (await provider.list()).map((image) => image.externalId),
          [externalId],
        );
        assert.equal((await openProvider(t, settings).upload({ ...request, shared })).externalId, externalId);
        assert.deepEqual(await idsOf(site), [externalId]);
        await provider.discard(request.uploadId);
        assert.deepEqual(await idsOf(site), []);
      });
    }
  }

  test('an image with os_hidden true and without data is a partial upload', async (t) => {
    const site = await openSite(t, {});
    const tags = { nodepool_build_id: '1', nodepool_image_name: 'debian' };
    const left = { os_hidden: true, nodepool_provider_name: 'cloud', nodepool_upload_id: 'u1', ...tags };
    const formats = { disk_format: 'qcow2', container_format: 'bare' };
    await (await site.account.glance()).request('POST', '/images', { ...left, ...formats });
    const [partial] = await site.provider.listPartialUploads();
    assert.equal(partial?.uploadId, 'u1');
    assert.equal(await partial.remove(), true);
    assert.deepEqual(await idsOf(site), []);
  });
});

describe('a deactivated image', () => {
  for (const shared of [false, true]) {
    test(`a deactivated image is neither used nor replaced by a further ${shared ? 'shared' : 'usual'} upload, but discarded`, async (t) => {
      const site = await openSite(t, {});
      const { provider, request, admin } = site;
      const { externalId } = await provider.upload({ ...request, shared });
      await (await admin.glance()).request('POST', `/images/${externalId}/actions/deactivate`);
      await assert.rejects(
        provider.upload({ ...request, shared }),
        failsWith('conflict', `image ${externalId} of this upload is deactivated; reactivate it`),
      );
      assert.deepEqual(await idsOf(site), [externalId]);
      await provider.discard(request.uploadId);
      assert.deepEqual(await idsOf(site), []);
    });
  }
});
