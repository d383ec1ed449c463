import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { CloudDouble } from '../../../test/doubles/openstack/cloud-double.ts';
import { respondsWith, stallsAfter } from '../../../test/fixtures/fault-proxy/faults.ts';
import { waitUntil } from '../../../test/fixtures/wait-until.ts';
import { OpenStackProvider } from '../src/index.ts';
import { failsWith } from './fixtures/fails-with.ts';
import { SILENT } from './fixtures/silent-logger.ts';
import { openProvider, uploadRequest } from './provider-fixture.ts';
import { openRealCloud } from './real-cloud.ts';

const PUT_FILE = { method: 'PUT', path: /\/file$/ };

describe('an image in the cloud', () => {
  for (const built of [true, false]) {
    test(`an image in Glance has all properties, with ${built ? '' : 'un'}known digests`, async (t) => {
      const { settings, glance, images } = await openRealCloud(t);
      const metadata = { os: 'debian', min_ram: '512', tags: 'ci', protected: 'False' };
      const request = { ...(await uploadRequest(t, { built })), metadata };
      const { externalId } = await openProvider(t, settings).upload(request);
      const [image, ...others] = await images();
      assert.ok(image);
      const { id, name, status, disk_format, container_format, visibility, os, min_ram, tags } = image;
      assert.deepEqual(
        { id, name, status, disk_format, container_format, visibility, os, min_ram, tags },
        {
          id: externalId,
          name: 'template-debian',
          status: 'active',
          disk_format: 'qcow2',
          container_format: 'bare',
          visibility: 'private',
          os: 'debian',
          min_ram: 512,
          tags: ['ci'],
        },
      );
      const ours = Object.entries(image).filter(([key]) => /^(nodepool|owner_specified)/.test(key));
      const md5 = image.checksum;
      const sha256 = image['owner_specified.openstack.sha256'];
      assert.match(String(sha256), /^[0-9a-f]{64}$/);
      assert.deepEqual(Object.fromEntries(ours), {
        nodepool_build_id: '0001',
        nodepool_image_name: 'debian',
        nodepool_provider_name: 'cloud',
        nodepool_upload_id: 'u1',
        ...ownerSpecified('openstack', md5, sha256),
        ...ownerSpecified('shade', md5, sha256),
      });
      assert.deepEqual(others, []);
      // Known digests are set when the image is created.
      assert.equal(glance.requests.filter(({ method }) => method === 'PATCH').length, built ? 0 : 1);
    });
  }

  test('an image in Glance is protected once it is complete', async (t) => {
    const { settings, glance, images } = await openRealCloud(t);
    const provider = openProvider(t, settings);
    const request = { ...(await uploadRequest(t)), metadata: { protected: 'true' } };
    glance.inject(PUT_FILE, respondsWith(500));
    const { externalId } = await provider.upload(request);
    const [image, ...others] = await images();
    assert.deepEqual([image?.id, image?.protected, others], [externalId, true, []]);
  });

  test('an image in Glance may be deleted concurrently by another client', async (t) => {
    const { settings, glance, images } = await openRealCloud(t);
    const provider = openProvider(t, settings);
    const { externalId } = await provider.upload(await uploadRequest(t));
    const body = 'Image status transition from deleted to deleted is not allowed';
    glance.inject({ method: 'DELETE' }, respondsWith(400, { body }));
    await assert.rejects(provider.delete(externalId), failsWith('bad-request', body));
    glance.inject({ method: 'DELETE' }, async (exchange) => {
      (await exchange.fetchResponse()).resume();
      await respondsWith(400, { body })(exchange);
    });
    await provider.delete(externalId);
    assert.deepEqual(await images(), []);
  });
});

describe('an earlier attempt of an upload', () => {
  for (const built of [true, false]) {
    test(`an earlier upload attempt’s complete image in Glance is reused, with ${built ? '' : 'un'}known digests`, async (t) => {
      const { settings, glance, images } = await openRealCloud(t);
      const request = await uploadRequest(t, { built });
      const first = await openProvider(t, settings).upload(request);
      const before = glance.requests.length;
      // Acts as another process.
      const second = await openProvider(t, settings).upload(request);
      assert.deepEqual(second, first);
      assert.equal((await images()).length, 1);
      const methods = glance.requests.slice(before).map(({ method }) => method);
      assert.ok(
        methods.every((method) => method === 'GET'),
        methods.join(),
      );
    });
  }

  test('an earlier upload attempt with incomplete images in Glance is repeated, and they are removed', async (t) => {
    const { settings, account, images } = await openRealCloud(t);
    const request = await uploadRequest(t);
    const glance = await account.glance();
    const left = { disk_format: 'qcow2', container_format: 'bare', nodepool_upload_id: 'u1' };
    const provider = openProvider(t, settings);
    const other = await provider.upload({ ...(await uploadRequest(t)), uploadId: 'u2' });
    const patch = [{ op: 'replace', path: '/nodepool_upload_id', value: 'u1' }];
    await glance.request('PATCH', `/images/${other.externalId}`, patch, {
      'content-type': 'application/openstack-images-v2.1-json-patch',
    });
    await glance.request('POST', '/images', { name: 'half', ...left });
    const { externalId } = await provider.upload(request);
    const [image, ...others] = await images();
    assert.deepEqual([image?.id, image?.checksum], [externalId, request.file.checksums?.md5]);
    assert.notEqual(externalId, other.externalId);
    assert.deepEqual(others, []);
  });

  test('an earlier upload attempt whose request takes effect late leaves no second image in Glance', async (t) => {
    const cloud = await CloudDouble.start(t);
    const provider = openProvider(t, cloud.settings());
    cloud.intercept = ({ method, path, body }) => {
      if (method !== 'POST') return undefined;
      cloud.intercept = (late) => {
        if (late.path.endsWith('/file')) cloud.glance.handle({ ...late, method, path, body });
        return undefined;
      };
      return { status: 504, body: 'gateway timeout' };
    };
    const { externalId } = await provider.upload(await uploadRequest(t));
    assert.deepEqual([...cloud.glance.images.keys()], [externalId]);
  });

  test('an earlier upload attempt without the last properties in Glance is completed', async (t) => {
    const { settings, images } = await openRealCloud(t);
    const request = await uploadRequest(t);
    const provider = openProvider(t, settings);
    const { externalId } = await provider.upload(request);
    const metadata = { os: 'debian', protected: 'true' };
    assert.equal((await provider.upload({ ...request, metadata })).externalId, externalId);
    assert.equal((await images())[0]?.protected, true);
  });
});

/** Returns the tags of an image in {@link CloudDouble}. */
const ours = {
  nodepool_provider_name: 'cloud',
  nodepool_build_id: '1',
  nodepool_upload_id: 'u1',
  nodepool_image_name: 'debian',
};

describe('the list', () => {
  for (const next of [null, '']) {
    test(`the image list in Glance ends at a page whose next is ${JSON.stringify(next)}`, async (t) => {
      const cloud = await CloudDouble.start(t);
      cloud.intercept = ({ method, path }) =>
        method === 'GET' && path === '/v2/images' ? { status: 200, body: { images: [], next } } : undefined;
      assert.deepEqual(await openProvider(t, cloud.settings(), { formats: ['raw'] }).list(), []);
    });
  }

  test('the image list contains each image once in a cloud without hidden images', async (t) => {
    const cloud = await CloudDouble.start(t);
    const { id } = cloud.glance.importImage({ ...ours, disk_format: 'qcow2' }, Buffer.alloc(1));
    const provider = openProvider(t, cloud.settings());
    for (const behaviour of ['refuses', 'ignores']) {
      cloud.intercept = ({ method, path, query }) => {
        if (method !== 'GET' || path !== '/v2/images' || !query.has('os_hidden')) return undefined;
        if (behaviour === 'refuses') return { status: 400, body: 'unknown filter os_hidden' };
        query.delete('os_hidden');
        return undefined;
      };
      assert.deepEqual(
        (await provider.list()).map(({ externalId }) => externalId),
        [id],
        behaviour,
      );
    }
  });

  test('the image list contains images whose size is not a number, with size 0', async (t) => {
    const cloud = await CloudDouble.start(t);
    for (const size of ['123', null, 123]) {
      cloud.glance.importImage({ ...ours, disk_format: 'qcow2' }, Buffer.alloc(1)).size = size;
    }
    const images = await openProvider(t, cloud.settings()).list();
    assert.deepEqual(
      images.map(({ size }) => size),
      [0, 0, 123],
    );
  });

  test('the image list contains this provider’s active images from all pages', async (t) => {
    const cloud = await CloudDouble.start(t);
    const provider = openProvider(t, cloud.settings(), { formats: ['qcow2', 'vpc'] });
    const data = Buffer.from('12345');
    for (const properties of [
      { ...ours, disk_format: 'qcow2' },
      { ...ours, disk_format: 'vhd' },
      { ...ours, disk_format: 'raw' },
      { ...ours, disk_format: 'qcow2', nodepool_provider_name: 'another' },
      { disk_format: 'qcow2', nodepool_provider_name: 'cloud' },
      { name: 'made by hand', disk_format: 'qcow2' },
    ]) {
      cloud.glance.importImage(properties, data);
    }
    cloud.glance.importImage({ ...ours, disk_format: 'qcow2' }, data).status = 'queued';
    const listed = await provider.list();
    assert.deepEqual(
      listed.map(({ imageId, imageName, format, size }) => ({ imageId, imageName, format, size })),
      ['qcow2', 'vpc', 'raw'].map((format) => ({ imageId: '1', imageName: 'debian', format, size: 5 })),
    );
  });
});

describe('a provider', () => {
  test('a provider reports each successful request to the cloud by its name in shade', async (t) => {
    const cloud = await CloudDouble.start(t);
    const tasks: string[] = [];
    const onTask = (task: string, milliseconds: number): void => {
      assert.ok(milliseconds > 0);
      tasks.push(task);
    };
    const provider = openProvider(t, cloud.settings(), { session: { onTask } });
    const { externalId } = await provider.upload(await uploadRequest(t));
    await provider.delete(externalId);
    const lists = ['GlanceImageList', 'GlanceImageList']; // for visible and hidden images
    assert.deepEqual(tasks, [...lists, 'ImageCreate', 'ImageUpload', 'ImageGet', 'ImageGet', 'ImageDelete']);
  });

  test('a provider runs uploads to Glance concurrently, together below the bandwidth limit', async (t) => {
    const cloud = await CloudDouble.start(t);
    const provider = openProvider(t, cloud.settings(), { bandwidthLimit: 2_000_000 });
    const request = await uploadRequest(t, { size: 500_000 });
    const started = performance.now();
    await Promise.all([provider.upload(request), provider.upload({ ...request, uploadId: 'u2' })]);
    const passed = performance.now() - started;
    // 1 MB without the last chunk.
    assert.ok(passed >= 460, `after ${passed} ms`);
    assert.equal(cloud.glance.images.size, 2);
  });

  test('a provider is not blocked by a stalled upload to Glance', async (t) => {
    const { settings, glance, images } = await openRealCloud(t);
    const provider = openProvider(t, settings);
    const request = await uploadRequest(t);
    glance.inject(PUT_FILE, stallsAfter(1000));
    const abort = new AbortController();
    const stalled = provider.upload(request, { signal: abort.signal });
    await waitUntil('the first to stall', () => glance.requests.some(({ bodyBytes }) => bodyBytes === 1000));
    const { externalId } = await provider.upload({ ...request, uploadId: 'u2' });
    abort.abort();
    await assert.rejects(stalled, failsWith('aborted'));
    assert.deepEqual(
      (await images()).map(({ id }) => id),
      [externalId],
    );
  });

  test('a provider reports invalid cloud settings, and reads them again the next time', async (t) => {
    const cloud = await CloudDouble.start(t);
    let faulty = true;
    const fault = new Error('clouds.yaml is no YAML');
    const provider = new OpenStackProvider({
      name: 'cloud',
      formats: ['qcow2'],
      settings: async () => {
        if (faulty) throw fault;
        return cloud.settings();
      },
      logger: SILENT,
    });
    await assert.rejects(provider.list(), fault);
    faulty = false;
    assert.deepEqual(await provider.list(), []);
  });

  test('a provider that is closed aborts its running requests to the cloud', async (t) => {
    const cloud = await CloudDouble.start(t);
    const provider = openProvider(t, cloud.settings());
    cloud.intercept = ({ path }) => {
      if (path.endsWith('/file')) provider.close();
      return undefined;
    };
    await assert.rejects(provider.upload(await uploadRequest(t)), failsWith('aborted', 'cloud double'));
  });
});

function ownerSpecified(owner: string, md5: unknown, sha256: unknown): object {
  return {
    [`owner_specified.${owner}.md5`]: md5,
    [`owner_specified.${owner}.sha256`]: sha256,
    [`owner_specified.${owner}.object`]: 'images/template-debian',
  };
}
