// Only in test:all: it has further variants of an upload.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createReadStream, statSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { pipeline } from 'node:stream';
import { describe, type TestContext, test } from 'node:test';
import { changesResponse } from '../../../test/fixtures/fault-proxy/faults.ts';
import { failsWith } from './fixtures/fails-with.ts';
import { openProvider, uploadRequest } from './provider-fixture.ts';
import { openRealCloud } from './real-cloud.ts';

const INFO = { method: 'GET', path: /\/info\/import$/ };
const GET_IMAGE = { method: 'GET', path: /\/v2\/images\/[^?]/ };
const GLANCE_DIRECT = { imageImport: { method: 'glance-direct' } } as const;

/** Serves the files in a directory. Returns the URL. */
async function serveDirectory(t: TestContext, directory: string): Promise<string> {
  const server = createServer((request, response) => {
    const path = join(directory, basename(decodeURIComponent(request.url ?? '')));
    // Without this header, Glance's web-download fails.
    response.setHeader('content-length', statSync(path).size);
    pipeline(createReadStream(path), response, () => {});
  });
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

describe('an upload by glance-direct', () => {
  for (const built of [true, false]) {
    test(`an upload by glance-direct stages the file and imports it, with ${built ? '' : 'un'}known digests`, async (t) => {
      const { settings, images } = await openRealCloud(t);
      const provider = openProvider(t, settings, GLANCE_DIRECT);
      const request = await uploadRequest(t, { built });
      const { externalId } = await provider.upload(request);
      const [image, ...others] = await images();
      assert.deepEqual([image?.id, image?.status, image?.size], [externalId, 'active', request.file.size]);
      assert.equal(image?.['owner_specified.openstack.md5'], image?.checksum);
      assert.deepEqual(others, []);
    });
  }

  test('an upload by glance-direct in another format fails at once if the cloud compares formats', async (t) => {
    const { settings, images } = await openRealCloud(t);
    const { file, ...request } = await uploadRequest(t, { format: 'raw' });
    const mislabelled = { ...request, file: { ...file, format: 'qcow2' as const } };
    const options = { retry: { attempts: 1, delay: 0 } };
    // Glance before 2024 stores any data as qcow2.
    const [byPut, byImport] = await Promise.allSettled([
      openProvider(t, settings, options).upload({ ...mislabelled, uploadId: 'u1' }),
      openProvider(t, settings, { ...options, ...GLANCE_DIRECT }).upload({ ...mislabelled, uploadId: 'u2' }),
    ]);
    assert.equal(byImport.status, byPut.status);
    if (byPut.status === 'fulfilled' || byImport.status === 'fulfilled') return;
    assert.ok(failsWith('wrong-format', 'compare the file format')(byPut.reason));
    assert.ok(failsWith('image-failed', 'could not be imported')(byImport.reason));
    assert.deepEqual(await images(), []);
  });

  test('an upload by glance-direct accepts data with another size, which the cloud has converted', async (t) => {
    const { settings, glance, images } = await openRealCloud(t);
    const provider = openProvider(t, settings, GLANCE_DIRECT);
    const converted = changesResponse((image) => ({ ...image, size: 10_000_000, checksum: 'of that' }));
    glance.inject(GET_IMAGE, converted);
    const { externalId } = await provider.upload(await uploadRequest(t));
    assert.deepEqual(
      (await images()).map(({ id }) => id),
      [externalId],
    );
  });

  test('an upload by glance-direct fails before an image is created if the cloud does not offer it', async (t) => {
    const { settings, glance, images } = await openRealCloud(t);
    const provider = openProvider(t, settings, GLANCE_DIRECT);
    glance.inject(
      INFO,
      changesResponse(() => ({ 'import-methods': { value: ['web-download', 'copy-image'] } })),
    );
    await assert.rejects(
      provider.upload(await uploadRequest(t)),
      failsWith(
        'invalid-settings',
        'does not offer image-import glance-direct, only web-download, copy-image',
      ),
    );
    assert.ok(glance.requests.every(({ method }) => method === 'GET'));
    assert.deepEqual(await images(), []);
  });
});

describe('an upload by web-download', () => {
  for (const built of [true, false]) {
    test(`an upload by web-download lets the cloud download the file, with ${built ? '' : 'un'}known digests`, async (t) => {
      const { settings, glance, images } = await openRealCloud(t);
      const request = await uploadRequest(t, { built });
      const baseUrl = `${await serveDirectory(t, dirname(request.file.path))}/`;
      const provider = openProvider(t, settings, { imageImport: { method: 'web-download', baseUrl } });
      const { externalId } = await provider.upload(request);
      const [image, ...others] = await images();
      assert.deepEqual([image?.id, image?.status, image?.size], [externalId, 'active', request.file.size]);
      assert.equal(image?.['owner_specified.openstack.md5'], image?.checksum);
      assert.deepEqual(others, []);
      assert.ok(glance.requests.every(({ method }) => method !== 'PUT'));
    });
  }

  test('an upload by web-download leaves no image if the file differs from what was built', async (t) => {
    const { settings, images } = await openRealCloud(t);
    const [request, other] = await Promise.all([uploadRequest(t), uploadRequest(t)]);
    const baseUrl = await serveDirectory(t, dirname(other.file.path));
    const provider = openProvider(t, settings, { imageImport: { method: 'web-download', baseUrl } });
    await assert.rejects(provider.upload(request), failsWith('checksum-mismatch', request.file.path));
    assert.deepEqual(await images(), []);
  });

  test('an upload by web-download of a file that is not served leaves no image', async (t) => {
    const { settings, images } = await openRealCloud(t);
    const request = await uploadRequest(t);
    const baseUrl = 'http://127.0.0.1:1';
    const provider = openProvider(t, settings, {
      imageImport: { method: 'web-download', baseUrl },
      retry: { attempts: 1, delay: 0 },
    });
    await assert.rejects(provider.upload(request), failsWith('image-failed', 'could not be imported'));
    assert.deepEqual(await images(), []);
  });
});
