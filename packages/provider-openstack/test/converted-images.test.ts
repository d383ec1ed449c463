// Only in test:all: it waits for further kinds of images in Glance.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { describe, type TestContext, test } from 'node:test';
import type { UploadRequest } from '@nodepool-builder/image-builder';
import { CloudDouble } from '../../../test/doubles/openstack/cloud-double.ts';
import type { StoredImage } from '../../../test/doubles/openstack/glance-double.ts';
import { changesResponse } from '../../../test/fixtures/fault-proxy/faults.ts';
import type { OpenStackProvider } from '../src/index.ts';
import { failsWith } from './fixtures/fails-with.ts';
import { openProvider, uploadRequest } from './provider-fixture.ts';
import { openRealCloud } from './real-cloud.ts';

const SIZE = 100_000;
const OTHER_MD5 = 'a'.repeat(32);
const NO_DIGEST = { checksum: null, os_hash_algo: null, os_hash_value: null };

/** Change that a cloud makes to an image once it has the file's data. */
type Change = Readonly<Record<string, unknown>>;

interface Site {
  readonly cloud: CloudDouble;
  readonly provider: OpenStackProvider;
  readonly request: UploadRequest;
  readonly warnings: readonly string[];
  readonly open: () => OpenStackProvider;
  readonly puts: () => number;
}

/** Creates a cloud that changes each image as soon as it has data. */
async function openSite(t: TestContext, change: (bytes: Buffer) => Change): Promise<Site> {
  const cloud = await CloudDouble.start(t);
  const warnings: string[] = [];
  const logger = { debug() {}, info() {}, warn: (line: string) => warnings.push(line), error() {} };
  const open = (): OpenStackProvider =>
    openProvider(t, cloud.settings(), { logger, retry: { attempts: 2, delay: 0.001 } });
  cloud.intercept = ({ method, path, body }) => {
    if (method !== 'PUT' || !path.endsWith('/file')) return undefined;
    const image = cloud.glance.images.get(path.split('/')[3] ?? '') as StoredImage;
    Object.assign(image, { status: 'active', size: body.length, checksum: md5Of(body) }, change(body));
    return { status: 204 };
  };
  const request = await uploadRequest(t, { size: SIZE });
  const puts = (): number => cloud.requests.filter((line) => line.startsWith('PUT ')).length;
  return { cloud, provider: open(), request, warnings, open, puts };
}

function md5Of(bytes: Buffer): string {
  return createHash('md5').update(bytes).digest('hex');
}

const ACCEPTED: Readonly<Record<string, Change>> = {
  'has another size and no digest': { ...NO_DIGEST, size: 3 * SIZE + 512 },
  'has size 0 and no digest': { ...NO_DIGEST, size: 0 },
  'has size null and no digest': { ...NO_DIGEST, size: null },
  'has size 0 and another checksum': { size: 0, checksum: OTHER_MD5 },
  'has a larger size and another checksum': { size: 2 * SIZE, checksum: OTHER_MD5 },
  'has a smaller size and another checksum': { size: SIZE / 2, checksum: OTHER_MD5 },
  'has another format and another checksum': { disk_format: 'raw', checksum: OTHER_MD5 },
  'has a format that only the cloud knows': { ...NO_DIGEST, disk_format: 'zvhd2', size: 2 * SIZE },
};

describe('images that a cloud has changed', () => {
  for (const [name, change] of Object.entries(ACCEPTED)) {
    test(`an active image that ${name} counts as converted by the cloud, with a warning`, async (t) => {
      const { cloud, provider, request, warnings, puts, open } = await openSite(t, () => change);
      const { externalId, isConverted } = await provider.upload(request);
      assert.equal(isConverted, true);
      assert.match(
        warnings.join('\n'),
        /image \S+ could not be compared with .*; it may have converted them/,
      );
      assert.equal((await open().upload(request)).externalId, externalId);
      assert.deepEqual([puts(), [...cloud.glance.images.keys()]], [1, [externalId]]);
      assert.deepEqual(
        (await provider.list()).map((image) => image.externalId),
        [externalId],
      );
    });

    test(`an active image that ${name} counts as converted, also for other processes with the same upload`, async (t) => {
      const { cloud, provider, request, puts, open } = await openSite(t, () => change);
      const shared = { ...request, shared: true };
      const { externalId } = await provider.upload(shared);
      assert.equal((await open().upload(shared)).externalId, externalId);
      assert.deepEqual([puts(), [...cloud.glance.images.keys()]], [1, [externalId]]);
    });
  }

  const UNKNOWN: Readonly<Record<string, Change>> = {
    'has the ETag of an object store as its checksum': { ...NO_DIGEST, checksum: `${OTHER_MD5}-3` },
    'has no digest': NO_DIGEST,
    'has a digest in capitals': {},
  };
  for (const [name, change] of Object.entries(UNKNOWN)) {
    test(`an active image that ${name} counts as the stored file`, async (t) => {
      const { provider, request, warnings } = await openSite(t, (bytes) => ({
        ...(name.includes('capitals') && { checksum: md5Of(bytes).toUpperCase() }),
        ...change,
      }));
      await provider.upload(request);
      assert.deepEqual(warnings, []);
    });
  }

  const DAMAGED: Readonly<Record<string, (bytes: Buffer) => Change>> = {
    'has the size and format of the file, but another checksum': () => ({ checksum: OTHER_MD5 }),
    'has the size and format of the file, but another digest': () => ({
      checksum: null,
      os_hash_algo: 'sha512',
      os_hash_value: 'b'.repeat(128),
    }),
    'has only the first bytes of the file': (bytes) => ({
      size: 5000,
      checksum: md5Of(bytes.subarray(0, 5000)),
    }),
    'has no byte of the file': () => ({ size: 0, checksum: md5Of(Buffer.alloc(0)) }),
  };
  for (const [name, change] of Object.entries(DAMAGED)) {
    for (const shared of [false, true]) {
      test(`an active image that ${name} counts as damaged and fails ${shared ? 'a shared' : 'the'} upload`, async (t) => {
        const { cloud, provider, request, puts } = await openSite(t, change);
        const upload = provider.upload({ ...request, shared });
        await assert.rejects(upload, failsWith('checksum-mismatch', request.file.path));
        assert.deepEqual([puts(), cloud.glance.images.size], [2, 0]);
      });
    }
  }
});

test('a download does not rely on a size or a digest that the cloud does not report', async (t) => {
  const cloud = await CloudDouble.start(t);
  const provider = openProvider(t, cloud.settings());
  const request = await uploadRequest(t, { size: SIZE });
  const { externalId } = await provider.upload(request);
  Object.assign(cloud.glance.images.get(externalId) ?? {}, NO_DIGEST, {
    size: 0,
    checksum: `${OTHER_MD5}-3`,
  });
  const copy = `${request.file.path}.copy`;
  await provider.download(externalId, copy);
  assert.ok((await readFile(copy)).equals(await readFile(request.file.path)));
  assert.ok(!existsSync(`${copy}.partial`));
});

test('an import by glance-direct that keeps the size but changes the format counts as a conversion', async (t) => {
  const { settings, glance, images } = await openRealCloud(t);
  const provider = openProvider(t, settings, { imageImport: { method: 'glance-direct' } });
  const converted = changesResponse((image) => ({ ...image, disk_format: 'raw', checksum: OTHER_MD5 }));
  glance.inject({ method: 'GET', path: /\/v2\/images\/[^?]/, times: 100 }, converted);
  const { externalId } = await provider.upload(await uploadRequest(t));
  assert.deepEqual(
    (await images()).map(({ id }) => id),
    [externalId],
  );
});
