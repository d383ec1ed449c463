import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { type TestContext, test } from 'node:test';
import { ObjectStore } from '../../src/object-store.ts';
import { OpenStackSession } from '../../src/session/openstack-session.ts';
import { deleteLargeObject, putLargeObject } from '../../src/upload/large-object.ts';
import { CloudDouble } from '../cloud-double/cloud-double.ts';
import { SILENT } from '../fixtures/silent-logger.ts';

const DATA = randomBytes(1_000_000);
const { signal } = new AbortController();
const PLACE = { container: 'images', name: 'an upload' };

interface Store {
  readonly cloud: CloudDouble;
  readonly store: ObjectStore;
  /** Puts the data in segments of 300 kB. */
  readonly put: () => Promise<void>;
}

async function openStore(t: TestContext): Promise<Store> {
  const cloud = await CloudDouble.start(t);
  const settings = cloud.settings();
  const session = new OpenStackSession(settings, { logger: SILENT });
  t.after(() => session.close());
  const store = new ObjectStore({ client: session.client(settings.objectStore) });
  const put = (): Promise<void> =>
    putLargeObject(store, {
      ...PLACE,
      open: () => Readable.from([DATA.subarray(0, 400_000), DATA.subarray(400_000)]),
      size: DATA.length,
      segmentSize: 300_000,
      stallTimeout: 60,
      headers: async () => ({ 'x-object-meta-x-shade-md5': 'abc' }),
      signal,
    });
  return { cloud, store, put };
}

test('a large object is the data again, and lies beside its segments', async (t) => {
  const { cloud, put } = await openStore(t);
  await put();
  const object = cloud.swift.object('images', 'an upload');
  assert.deepEqual(object?.data, DATA);
  assert.equal(object?.headers['x-object-meta-x-shade-md5'], 'abc');
  assert.deepEqual(cloud.swift.names, [
    'images/an upload',
    ...[0, 1, 2, 3].map((number) => `images_segments/an upload/00000${number}`),
  ]);
});

test('its segments go with it, whether or not it came into being; others stay', async (t) => {
  const { cloud, store, put } = await openStore(t);
  cloud.swift.pageSize = 3;
  const other = async (): Promise<void> => {
    await store.createContainer('images_segments', signal);
    await store.put('images_segments', 'another/000000', () => Readable.from(['x'], { objectMode: false }), {
      size: 1,
      stallTimeout: 60,
      headers: {},
      signal,
    });
  };
  await other();
  await put();
  await deleteLargeObject(store, PLACE, signal);
  assert.deepEqual(cloud.swift.names, ['images_segments/another/000000']);
  await deleteLargeObject(store, PLACE, signal);
});

test('nothing to delete is no error', async (t) => {
  const { cloud, store } = await openStore(t);
  await deleteLargeObject(store, PLACE, signal);
  assert.deepEqual(cloud.swift.names, []);
});

test('a segment that arrives as something else is told', async (t) => {
  const { cloud, put } = await openStore(t);
  cloud.intercept = ({ path }) =>
    path.endsWith('/000001')
      ? { status: 201, headers: { etag: '"00000000000000000000000000000000"' } }
      : undefined;
  await assert.rejects(put(), {
    code: 'checksum-mismatch',
    message: /images_segments\/an upload\/000001 has md5 0{32} in the cloud/,
  });
});
