// Only in test:all: it waits for half a minute.
import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { CloudDouble, type Intercept } from '../../../test/doubles/openstack/cloud-double.ts';
import { OPENSTACK_MODULE } from '../src/index.ts';
import { SILENT } from './fixtures/silent-logger.ts';
import { uploadRequest } from './provider-fixture.ts';

/** Timeout in seconds. nodepool's own test of a failing upload waits for 60 s, which includes the build. */
const LIMIT = 40;

const DOWN = { status: 503, body: 'no service' };

const FAULTS: Readonly<Record<string, () => Intercept>> = {
  'rejects the data': () => (request) => (request.method === 'PUT' ? { status: 500 } : undefined),
  'creates no image': () => (request) => (request.method === 'POST' ? DOWN : undefined),
  'is down': () => () => DOWN,
  'goes down during the upload': () => {
    let isDown = false;
    return ({ method }) => {
      isDown ||= method === 'PUT';
      return isDown ? DOWN : undefined;
    };
  },
  'stores damaged data each time': () => {
    let id = '';
    return ({ method, path }) => {
      if (method === 'PUT') id = path.split('/')[3] ?? '';
      const image = { id, status: 'active', size: 100_000, checksum: 'a'.repeat(32) };
      const isShown = method === 'GET' && id !== '' && path.endsWith(id);
      return isShown ? { status: 200, body: { ...image, created_at: '2026-01-01T00:00:00Z' } } : undefined;
    };
  },
};

describe('uploads with default settings to a failing cloud', {
  concurrency: true,
}, () => {
  for (const [name, fault] of Object.entries(FAULTS)) {
    test(`an upload with default settings fails within ${LIMIT} s at a cloud that ${name}`, async (t) => {
      const seconds = await timeToFail(t, fault());
      assert.ok(seconds < LIMIT, `${seconds} s`);
    });
  }
});

async function timeToFail(t: TestContext, intercept: Intercept): Promise<number> {
  const cloud = await CloudDouble.start(t);
  cloud.intercept = intercept;
  const { rate, 'upload-retry-timeout': limit } = OPENSTACK_MODULE.settings.properties;
  const entry = { name: 'cloud', rate: rate.default, 'upload-retry-timeout': limit.default, images: [] };
  const provider = OPENSTACK_MODULE.images?.open(entry, {
    prepared: async () => cloud.settings(),
    formats: ['qcow2'],
    logger: SILENT,
    onTask() {},
  });
  assert.ok(provider);
  const request = await uploadRequest(t, { size: 100_000 });
  const started = performance.now();
  await assert.rejects(provider.upload(request));
  return (performance.now() - started) / 1000;
}
