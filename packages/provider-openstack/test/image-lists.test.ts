import assert from 'node:assert/strict';
import { it } from 'node:test';
import { HttpDouble, type Reply } from '../../../test/doubles/http-double.ts';
import { ImageApi } from '../src/image-api.ts';
import { ObjectStore } from '../src/object-store.ts';
import { OpenStackSession } from '../src/session/openstack-session.ts';
import { settingsWith } from './fixtures/cloud-settings.ts';
import { type Ending, plainClient } from './fixtures/plain-client.ts';
import { SILENT } from './fixtures/silent-logger.ts';

const { signal } = new AbortController();

function image(id: string, more: object = {}): object {
  return { id, status: 'active', created_at: '2026-01-01T00:00:00Z', ...more };
}

/** Creates a cloud without Keystone that returns these lists, and collects the warnings. */
async function cloudWith(
  t: Ending,
  reply: (query: URLSearchParams) => Reply,
): Promise<{ session: OpenStackSession; http: HttpDouble; warnings: string[] }> {
  const http = await HttpDouble.start(({ path }) => reply(new URL(path, 'http://cloud').searchParams));
  t.after(() => http[Symbol.asyncDispose]());
  const warnings: string[] = [];
  const logger = { ...SILENT, warn: (message: string) => warnings.push(message) };
  const session = new OpenStackSession(settingsWith({ type: 'none', endpoint: http.url }), { logger });
  return { session, http, warnings };
}

const OWN = { nodepool_provider_name: 'p' };

const BROKEN = [
  {},
  { id: 7, status: 'active' },
  { id: 'x', status: null },
  image('y', { created_at: 'soon' }),
];

it('images in Glance that cannot be read are omitted from a search, with a warning', async (t) => {
  const images = [null, 'image', ...BROKEN, image('a')];
  const { session, warnings } = await cloudWith(t, () => ({ status: 200, json: { images } }));
  const found = await new ImageApi(session).find({ name: 'debian' }, signal);
  assert.deepEqual(
    found.map(({ id }) => id),
    ['a'],
  );
  assert.deepEqual(warnings, ['cloud test: the image list contains 6 that cannot be read; they are ignored']);
});

it('unreadable images of other clients do not keep a provider from listing its own', async (t) => {
  const images = [...BROKEN, image('a', OWN), image('b', { nodepool_provider_name: 'q', created_at: null })];
  const { session } = await cloudWith(t, () => ({ status: 200, json: { images } }));
  const found = await new ImageApi(session).list(OWN, signal);
  assert.deepEqual(
    found.map(({ id }) => id),
    ['a'],
  );
});

it('one of our own images that cannot be read causes an error instead of appearing to be missing', async (t) => {
  for (const broken of [null, 7, { ...OWN }, { ...image('b', OWN), created_at: null }, { ...OWN, id: 'b' }]) {
    const images = [image('a', OWN), broken];
    const { session } = await cloudWith(t, () => ({ status: 200, json: { images } }));
    await assert.rejects(new ImageApi(session).list(OWN, signal), { code: 'invalid-response' });
  }
});

it('the next page of images is requested at the endpoint, whatever host, scheme and path its link names', async (t) => {
  for (const next of [
    '/v2/images?marker=a',
    'http://inside:9292/v2/images?marker=a',
    'https://inside/image/v2/images?marker=a',
    'images?marker=a',
    '?marker=a',
  ]) {
    const reply = (query: URLSearchParams): Reply => {
      const isFirst = query.get('marker') === null;
      return {
        status: 200,
        json: isFirst ? { images: [image('a')], next } : { images: [image('b')], next: null },
      };
    };
    const { session, http } = await cloudWith(t, reply);
    assert.equal((await new ImageApi(session).find({}, signal)).length, 2, next);
    assert.equal(http.requests.at(-1)?.path, '/v2/images?marker=a');
  }
});

for (const status of [400, 413]) {
  it(`a Glance that rejects a page of 1000 images with ${status} is queried for fewer`, async (t) => {
    const all = Array.from({ length: 60 }, (_, index) => image(String(index).padStart(3, '0')));
    const { session, http } = await cloudWith(t, (query) => {
      const limit = Number(query.get('limit') ?? 25);
      if (limit > 25) return { status, json: { message: `Limit ${limit} exceeds the maximum limit of 25` } };
      const after = query.get('marker') ?? '';
      const rest = all.filter((one) => (one as { id: string }).id > after);
      const images = rest.slice(0, limit);
      const last = (images.at(-1) as { id: string }).id;
      return {
        status: 200,
        json: { images, next: rest.length > limit ? `/v2/images?marker=${last}` : undefined },
      };
    });
    assert.equal((await new ImageApi(session).find({ name: 'debian' }, signal)).length, 60);
    assert.deepEqual(
      http.requests.slice(0, 3).map(({ path }) => path),
      ['/v2/images?name=debian&limit=1000', '/v2/images?name=debian&limit=100', '/v2/images?name=debian'],
    );
  });
}

it('a rejected list without a page size that the cloud permits throws the first request’s error', async (t) => {
  const { client, http, session } = await plainClient(t, { status: 413, text: 'quota: too many' });
  await assert.rejects(new ImageApi(session).find({}, signal), {
    code: 'too-large',
    message: /: 413 Payload Too Large: quota: too many$/,
  });
  assert.equal(http.requests.length, 3);
  assert.equal(client.cloud, 'test');
});

it('a Swift that rejects a page of 1000 objects is queried for fewer', async (t) => {
  const { session } = await cloudWith(t, (query) => {
    const isRefused = Number(query.get('limit') ?? 10) > 10;
    if (isRefused) return { status: 412, text: 'Maximum limit is 10' };
    const object = { name: 'a', last_modified: '2026-01-01T00:00:00' };
    return { status: 200, json: query.get('marker') === '' ? [object] : [] };
  });
  assert.equal((await new ObjectStore(session).list('images', 'a', signal)).length, 1);
});
