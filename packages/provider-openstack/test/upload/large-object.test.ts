import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { CloudDouble } from '../../../../test/doubles/openstack/cloud-double.ts';
import { ObjectStore } from '../../src/object-store.ts';
import { OpenStackSession } from '../../src/session/openstack-session.ts';
import { deleteLargeObject, putLargeObject, Segments } from '../../src/upload/large-object.ts';
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
        body: () => Readable.from([DATA.subarray(0, 400_000), DATA.subarray(400_000)]),
        size: DATA.length,
        stallTimeout: 60,
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

const SMALL = randomBytes(1000);

/** Data in chunks that match no segment, and a counter of its reads. */
function source(): { segments: Segments; readings: () => number } {
  let readings = 0;
  const open = (start: number): Readable => {
    readings += 1;
    const rest = SMALL.subarray(start);
    return Readable.from([rest.subarray(0, 7), rest.subarray(7, 700), rest.subarray(700)]);
  };
  return { segments: new Segments(open), readings: () => readings };
}

test('consecutive segments of a file are read in one pass', async () => {
  const { segments, readings } = source();
  for (let start = 0; start < SMALL.length; start += 300) {
    const end = Math.min(start + 300, SMALL.length);
    assert.deepEqual(await buffer(segments.read(start, end)), SMALL.subarray(start, end));
  }
  assert.equal(readings(), 1);
});

test('a partly or fully read segment can be read again, and so can later ones', async () => {
  const { segments, readings } = source();
  assert.deepEqual(await buffer(segments.read(0, 300)), SMALL.subarray(0, 300));
  for await (const piece of segments.read(300, 710)) {
    assert.deepEqual(piece, SMALL.subarray(300, 700));
    break;
  }
  assert.deepEqual(await buffer(segments.read(300, 710)), SMALL.subarray(300, 710));
  assert.equal(readings(), 2);
  assert.deepEqual(await buffer(segments.read(300, 710)), SMALL.subarray(300, 710));
  assert.deepEqual(await buffer(segments.read(710, 1000)), SMALL.subarray(710));
  assert.equal(readings(), 3);
});

test('a file’s last segment may be short', async () => {
  const { segments } = source();
  assert.deepEqual(await buffer(segments.read(900, 2000)), SMALL.subarray(900));
});
