import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { type TestContext, test } from 'node:test';
import { CloudDouble } from '../../../../test/doubles/openstack/cloud-double.ts';
import { ObjectStore } from '../../src/object-store.ts';
import { OpenStackSession } from '../../src/session/openstack-session.ts';
import { deleteLargeObject, putLargeObject } from '../../src/upload/large-object.ts';
import { SILENT } from '../fixtures/silent-logger.ts';

const DATA = randomBytes(1_000_000);
const { signal } = new AbortController();
const PLACE = { container: 'images', name: 'an upload' };

interface Store {
  readonly cloud: CloudDouble;
  readonly store: ObjectStore;
  /** Uploads the data in segments of 300 kB. */
  readonly put: () => Promise<void>;
}

async function openStore(t: TestContext): Promise<Store> {
  const cloud = await CloudDouble.start(t);
  const settings = cloud.settings();
  const session = new OpenStackSession(settings, { logger: SILENT });
  t.after(() => session.close());
  const store = new ObjectStore(session);
  const put = (): Promise<void> =>
    putLargeObject(store, {
      ...PLACE,
      data: {
        body: (start, end) => Readable.from([DATA.subarray(start, end)]),
        size: DATA.length,
      },
      segmentSize: 300_000,
      headers: async () => ({ 'x-object-meta-x-shade-md5': 'abc' }),
      signal,
    });
  return { cloud, store, put };
}

test('a large object has its segments’ data', async (t) => {
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

test('deleting a large object removes its segments, even if it is incomplete, and no others', async (t) => {
  const { cloud, store, put } = await openStore(t);
  cloud.swift.pageSize = 3;
  const other = async (): Promise<void> => {
    await store.createContainer('images_segments', signal);
    await store.put('images_segments', 'another/000000', () => Readable.from(['x'], { objectMode: false }), {
      size: 1,
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

test('deleting a missing large object succeeds', async (t) => {
  const { cloud, store } = await openStore(t);
  await deleteLargeObject(store, PLACE, signal);
  assert.deepEqual(cloud.swift.names, []);
});

test('a large object’s segment with other data in the store causes an error', async (t) => {
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
