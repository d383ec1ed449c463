// Only in test:all: it has many faults of Glance.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { appendFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import type { UploadRequest } from '@nodepool-builder/image-builder';
import { CloudError, type CloudErrorCode } from '@nodepool-builder/image-builder/plugin';
import {
  changesResponse,
  cutsAfter,
  expiresToken,
  type Fault,
  losesResponse,
  respondsWith,
  stallsAfter,
} from '../../../test/fixtures/fault-proxy/faults.ts';
import { selfSigned } from '../../../test/fixtures/self-signed.ts';
import type { CloudAuth } from '../src/cloud-settings.ts';
import type { OpenStackProvider, OpenStackProviderOptions } from '../src/index.ts';
import { failsWith } from './fixtures/fails-with.ts';
import { openProvider, uploadRequest } from './provider-fixture.ts';
import { openRealCloud, type RealCloud } from './real-cloud.ts';

const ATTEMPTS = 2;
const SIZE = 3_000_000;
const PUT_FILE = { method: 'PUT', path: /\/file$/ };
const GET_IMAGE = { method: 'GET', path: /\/v2\/images\/[^?]/ };
const CREATE = { method: 'POST', path: /\/v2\/images$/ };
const ALWAYS = { times: Number.POSITIVE_INFINITY };

interface Site extends RealCloud {
  readonly provider: OpenStackProvider;
  readonly request: UploadRequest;
  /** Returns the number of PUT requests. */
  readonly puts: () => number;
  /** Asserts that the cloud contains only this image, with the file's data. */
  readonly hasOnly: (externalId: string) => Promise<void>;
}

async function openSite(t: TestContext, options: Partial<OpenStackProviderOptions> = {}): Promise<Site> {
  const cloud = await openRealCloud(t);
  const provider = openProvider(t, cloud.settings, {
    retry: { attempts: ATTEMPTS, delay: 0.001 },
    uploadTimeout: 0.3,
    ...options,
  });
  const request = await uploadRequest(t, { size: SIZE });
  return {
    ...cloud,
    provider,
    request,
    puts: () => cloud.glance.requests.filter(({ method }) => method === 'PUT').length,
    hasOnly: async (externalId) => {
      const images = await cloud.images();
      assert.deepEqual(
        images.map(({ id, status, checksum }) => ({ id, status, checksum })),
        [{ id: externalId, status: 'active', checksum: request.file.checksums?.md5 }],
      );
    },
  };
}

interface FaultCase {
  readonly name: string;
  readonly fault: Fault;
  readonly code: CloudErrorCode;
  /** Part of the message in addition to the cloud and the request. */
  readonly words: string;
}

const PUT_FAULTS: readonly FaultCase[] = [
  { name: '401', fault: respondsWith(401), code: 'auth-failed', words: 'check the credentials' },
  {
    name: '403',
    fault: respondsWith(403, { body: '<h1>403</h1>Not by policy' }),
    code: 'forbidden',
    words: 'Not by policy',
  },
  {
    name: '409',
    fault: respondsWith(409, { body: 'Image status transition is not allowed' }),
    code: 'conflict',
    words: 'status transition is not allowed',
  },
  {
    name: '410',
    fault: respondsWith(410, { body: 'The image may have been deleted during the upload' }),
    code: 'not-found',
    words: 'deleted during the upload',
  },
  { name: '413', fault: respondsWith(413), code: 'too-large', words: 'higher limit' },
  {
    name: '415',
    fault: respondsWith(415, { body: 'Image disk_format qcow2 does not match stream data raw' }),
    code: 'wrong-format',
    words:
      'does not match stream data raw; compare the file format, which qemu-img info shows, with image-type',
  },
  {
    name: 'an exceeded quota',
    fault: respondsWith(413, { body: 'The size of the data exceeds the quota: 10 bytes' }),
    code: 'quota-exceeded',
    words: 'exceeds the quota: 10 bytes; delete what is not needed',
  },
  {
    name: '429',
    fault: respondsWith(429, { headers: { 'retry-after': '0' } }),
    code: 'rate-limited',
    words: '429 Too Many Requests',
  },
  { name: '500', fault: respondsWith(500), code: 'service-unavailable', words: '500 Internal Server Error' },
  { name: '503', fault: respondsWith(503), code: 'service-unavailable', words: '503 Service Unavailable' },
  {
    name: 'a reset after half the bytes',
    fault: cutsAfter(SIZE / 2),
    code: 'connection-failed',
    words: 'PUT',
  },
];

/** Faults after which the upload is retried. */
function isRetried({ name, code }: Pick<FaultCase, 'name' | 'code'>): boolean {
  return new CloudError(code, code).retriable || code === 'conflict' || name === '410';
}

describe('a PUT of the file', () => {
  for (const faultCase of PUT_FAULTS) {
    const { name, fault, code, words } = faultCase;
    test(`a PUT of the file with ${name} each time fails and leaves no image`, async (t) => {
      const { provider, request, glance, images, puts } = await openSite(t);
      glance.inject({ ...PUT_FILE, ...ALWAYS }, fault);
      await assert.rejects(provider.upload(request), failsWith(code, 'cloud test: PUT ', words));
      assert.deepEqual(await images(), []);
      // A rejected token is replaced once.
      const tries = code === 'auth-failed' ? 2 : 1;
      assert.equal(puts(), isRetried(faultCase) ? ATTEMPTS : tries);
    });
  }

  for (const { name, fault } of PUT_FAULTS.filter(isRetried)) {
    test(`a PUT of the file with ${name} once is retried and leaves one image`, async (t) => {
      const { provider, request, glance, puts, hasOnly } = await openSite(t);
      glance.inject(PUT_FILE, fault);
      const { externalId } = await provider.upload(request);
      await hasOnly(externalId);
      assert.equal(puts(), 2);
    });
  }

  test('a PUT of the file with one stall is retried and leaves one image', async (t) => {
    const { provider, request, glance, puts, hasOnly } = await openSite(t, {
      session: { retry: { firstDelay: 0.001, attempts: 3 }, stallTimeout: 10 },
    });
    glance.inject(PUT_FILE, stallsAfter(SIZE / 2));
    const { externalId } = await provider.upload(request);
    await hasOnly(externalId);
    assert.equal(puts(), 2);
  });

  test('a PUT of the file with a stall each time fails and leaves no image', async (t) => {
    const { provider, request, glance, images, puts } = await openSite(t, {
      session: { retry: { firstDelay: 0.001, attempts: 3 }, stallTimeout: 1 },
    });
    glance.inject({ ...PUT_FILE, ...ALWAYS }, stallsAfter(SIZE / 2));
    await assert.rejects(
      provider.upload(request),
      failsWith(
        'connection-failed',
        'cloud test: PUT ',
        'the server read no byte and sent no response for 1 s',
      ),
    );
    assert.deepEqual(await images(), []);
    assert.equal(puts(), ATTEMPTS);
  });

  test('a PUT of the file whose token expires in the middle is repeated with a new one', async (t) => {
    const { provider, request, glance, hasOnly } = await openSite(t);
    const expired = glance.inject(PUT_FILE, expiresToken(SIZE / 2));
    const { externalId } = await provider.upload(request);
    assert.equal(expired.hits, 1);
    await hasOnly(externalId);
  });

  test('a PUT of the file obeys Retry-After', async (t) => {
    const { provider, request, glance, hasOnly } = await openSite(t);
    glance.inject(PUT_FILE, respondsWith(429, { headers: { 'retry-after': '1' } }));
    const started = performance.now();
    const { externalId } = await provider.upload(request);
    assert.ok(performance.now() - started >= 1000);
    await hasOnly(externalId);
  });

  test('a PUT of the file that is aborted leaves no image', async (t) => {
    const { provider, request, glance, images } = await openSite(t);
    glance.inject(PUT_FILE, stallsAfter(SIZE / 2));
    const abort = new AbortController();
    const reason = new Error('cancelled');
    const upload = provider.upload(request, {
      signal: abort.signal,
      onProgress: () => abort.abort(reason),
    });
    await assert.rejects(upload, { cause: reason });
    assert.deepEqual(await images(), []);
  });
});

const IMAGE_FAULTS: readonly FaultCase[] = [
  {
    name: 'stays in saving',
    fault: changesResponse((image) => ({ ...image, status: 'saving' })),
    code: 'image-timeout',
    words: 'is saving and not active after 0.3 s',
  },
  {
    name: 'goes back to queued',
    fault: changesResponse((image) => ({ ...image, status: 'queued' })),
    code: 'image-failed',
    words: 'went to queued instead of active',
  },
  { name: 'no longer exists', fault: respondsWith(404), code: 'image-failed', words: 'is gone' },
  {
    name: 'has another checksum',
    fault: changesResponse((image) => ({ ...image, checksum: 'd41d8cd98f00b204e9800998ecf8427e' })),
    code: 'checksum-mismatch',
    words: 'has md5 d41d8cd98f00b204e9800998ecf8427e',
  },
  {
    name: 'has another digest, and no checksum',
    fault: changesResponse((image) => ({ ...image, checksum: null, os_hash_value: '0'.repeat(128) })),
    code: 'checksum-mismatch',
    words: 'has sha512 00',
  },
  {
    name: 'is shown without an id',
    fault: changesResponse(({ id: _, ...image }) => image),
    code: 'invalid-response',
    words: 'id is missing',
  },
];

describe('an image after its upload', () => {
  for (const { name, fault, code, words } of IMAGE_FAULTS) {
    test(`an image that ${name} after the upload causes an error and is removed`, async (t) => {
      const { provider, request, glance, images, puts } = await openSite(t);
      glance.inject({ ...GET_IMAGE, ...ALWAYS }, fault);
      await assert.rejects(provider.upload(request), failsWith(code, 'cloud test: ', words));
      assert.deepEqual(await images(), []);
      assert.equal(puts(), isRetried({ name, code }) ? ATTEMPTS : 1);
    });
  }
});

describe('the creation of an image', () => {
  test('creating an image without a response leaves no second image', async (t) => {
    const { provider, request, glance, hasOnly } = await openSite(t);
    glance.inject(CREATE, losesResponse());
    const { externalId } = await provider.upload(request);
    await hasOnly(externalId);
    assert.equal(glance.requests.filter(({ method }) => method === 'POST').length, 2);
  });

  test('creating an image without a response each time fails and leaves no image', async (t) => {
    const { provider, request, glance, images } = await openSite(t);
    glance.inject({ ...CREATE, ...ALWAYS }, losesResponse());
    await assert.rejects(
      provider.upload(request),
      failsWith('connection-failed', 'cloud test: POST ', '/v2/images'),
    );
    assert.deepEqual(await images(), []);
  });

  test('creating an image beyond a quota fails with the cloud’s message', async (t) => {
    const { provider, request, glance, images } = await openSite(t);
    const body = { message: 'Resource image_count_total is over limit of 1' };
    glance.inject(CREATE, respondsWith(413, { body }));
    await assert.rejects(
      provider.upload(request),
      failsWith('quota-exceeded', body.message, 'request a larger quota'),
    );
    assert.deepEqual(await images(), []);
  });
});

describe('a cloud', () => {
  test('an upload to a cloud without an image service causes an error', async (t) => {
    const { provider, request, keystone, images } = await openSite(t);
    const fault = changesResponse(({ token }) => ({
      token: { ...(token as object), catalog: OTHER_CATALOG },
    }));
    keystone.inject({ method: 'POST', path: /\/auth\/tokens$/ }, fault);
    await assert.rejects(
      provider.upload(request),
      failsWith('no-such-service', 'cloud test', 'type image', 'services of type volume'),
    );
    assert.deepEqual(await images(), []);
  });

  test('an upload to a cloud with an untrusted certificate causes an error and sends no request', async (t) => {
    const { request, settings } = await openSite(t);
    const server = createServer(await selfSigned(), () => assert.fail('a request came through'));
    t.after(() => server.close());
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}/v3`;
    const provider = openProvider(t, { ...settings, auth: { ...settings.auth, url } as CloudAuth });
    await assert.rejects(
      provider.upload(request),
      failsWith('certificate-untrusted', 'cloud test', 'cacert'),
    );
  });

  test('an upload whose cleanup fails logs what to remove by hand', async (t) => {
    const { settings, request, glance, images } = await openSite(t);
    const warnings: string[] = [];
    const logger = { debug() {}, info() {}, warn: (line: string) => warnings.push(line), error() {} };
    const provider = openProvider(t, settings, { logger });
    glance.inject(PUT_FILE, respondsWith(403, { body: 'no upload' }));
    glance.inject({ method: 'DELETE' }, respondsWith(403, { body: 'no removal' }));
    await assert.rejects(provider.upload(request), failsWith('forbidden', 'no upload'));
    assert.match(
      warnings.join('\n'),
      /failed upload of image 0001 failed.*no removal.*nodepool_upload_id=u1/,
    );
    assert.equal((await images()).length, 1);
    await provider.discard(request.uploadId);
    assert.deepEqual(await images(), []);
  });
});

describe('an image file', () => {
  test('an image file that is deleted during its upload causes an error and leaves no image', async (t) => {
    const { provider, request, images } = await openSite(t);
    const upload = provider.upload(request, {
      onProgress: () => rmSync(request.file.path, { force: true }),
    });
    await assert.rejects(upload, failsWith('image-missing-on-disk', request.file.path, 'no longer exists'));
    assert.deepEqual(await images(), []);
  });

  test('an image file that changes during its upload causes an error and leaves no image', async (t) => {
    const { provider, request, images } = await openSite(t);
    const upload = provider.upload(request, { onProgress: () => appendFileSync(request.file.path, 'more') });
    await assert.rejects(upload, failsWith('image-missing-on-disk', request.file.path, 'changed'));
    assert.deepEqual(await images(), []);
  });

  test('an image file that changed since its build causes an error and leaves no image', async (t) => {
    const { provider, request, images } = await openSite(t);
    const file = { ...request.file, checksums: { md5: 'of another file', sha256: 'of another file' } };
    await assert.rejects(
      provider.upload({ ...request, file }),
      failsWith('checksum-mismatch', file.path, 'has of another file'),
    );
    assert.deepEqual(await images(), []);
  });

  test('an image file whose size differs from the request causes an error before the first request', async (t) => {
    const { provider, request, glance } = await openSite(t);
    const file = { ...request.file, size: 1 };
    await assert.rejects(
      provider.upload({ ...request, file }),
      failsWith('image-missing-on-disk', `has ${SIZE} bytes instead of 1`),
    );
    assert.deepEqual(glance.requests, []);
  });
});

const OTHER_CATALOG = [
  { type: 'volume', name: 'cinder', endpoints: [{ interface: 'public', url: 'http://127.0.0.1:1' }] },
];
