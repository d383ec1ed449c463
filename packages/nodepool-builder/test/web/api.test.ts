import assert from 'node:assert/strict';
import { request } from 'node:http';
import { describe, it } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { runInProcess } from '../../../../test/fixtures/command-in-process.ts';
import { provider } from '../../../../test/fixtures/managed-site.ts';
import { waitUntil } from '../../../../test/fixtures/wait-until.ts';
import { MAY_ACT, startWebSite, TOKEN, type WebSite } from '../../../../test/fixtures/web-site.ts';
import type { CloudImageRecord } from '../../src/web/cloud-image-watch.ts';

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

interface Operation {
  readonly parameters: readonly { readonly name: string }[];
  readonly responses: Readonly<Record<string, { readonly content: Readonly<Record<string, unknown>> }>>;
}

type BuildOrUpload = Readonly<Record<string, string>>;

/** Waits until both providers have an image. */
async function untilUploaded(site: WebSite): Promise<readonly BuildOrUpload[]> {
  return await waitUntil('two uploads', async () => {
    const uploads = (await site.api('/uploads')).body as BuildOrUpload[];
    return uploads.length === 2 && uploads.every(({ state }) => state === 'ready') && uploads;
  });
}

/** Encodes a key for a JSON pointer in a URL. */
function escaped(key: string): string {
  return encodeURIComponent(key.replaceAll('~', '~0').replaceAll('/', '~1'));
}

/** Checks values against the schemas of an OpenAPI document. */
function checker(document: Document) {
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  ajv.addSchema({ $id: 'api', ...document });
  return (path: string, method: string, status: number, type: string, value: unknown): void => {
    const { responses } =
      document.paths[path]?.[method] ?? assert.fail(`${method} ${path} is not documented`);
    const key = String(status) in responses ? String(status) : 'default';
    const keys = ['paths', path, method, 'responses', key, 'content', type, 'schema'];
    const schema = `api#/${keys.map(escaped).join('/')}`;
    assert.ok(ajv.validate(schema, value), `${method} ${path}: ${ajv.errorsText()}`);
  };
}

/** Returns the status of a request with a Host header that fetch would not send. */
async function statusFor(
  url: string,
  headers: Readonly<Record<string, string>>,
): Promise<number | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<number | undefined>();
  request(url, { headers }, (response) => {
    response.resume();
    resolve(response.statusCode);
  })
    .on('error', reject)
    .end();
  return await promise;
}

describe('the API of --web', () => {
  it('the API says that a changed configuration is refused, until it is mended', async (t) => {
    const site = await startWebSite(t, { diskimages: [], providers: [] });
    const problems = async (): Promise<string> =>
      ((await site.api('/site')).body as { readonly problems: readonly string[] }).problems.join('\n');
    await site.configure({ diskimages: 5 });
    site.service.child.kill('SIGHUP');
    await waitUntil('the reason', async () =>
      /the configuration is unchanged: .*nodepool\.yaml:1:\d+: diskimages must be a list/.test(
        await problems(),
      ),
    );
    await site.configure({ diskimages: [], providers: [] });
    site.service.child.kill('SIGHUP');
    await waitUntil('no problem', async () => (await problems()) === '');
  });

  it('the API shows what filters choose, as the page does', async (t) => {
    const site = await startWebSite(t, {
      'cloud-images': [{ name: 'absent', 'image-filters': [{ name: 'tag', values: ['none'] }] }],
      providers: [provider('east', { 'cloud-images': [{ name: 'fixed', 'image-id': '<x>.qcow2' }] })],
    });
    const images = await waitUntil('the first look', async () => {
      const { body } = await site.api('/cloud-images');
      const all = body as CloudImageRecord[];
      return all.length === 2 && all[1]?.error != null && all;
    });
    assert.deepEqual(
      images.map((image) => [image.name, image['external-id'], image.since]),
      [
        ['fixed', '<x>.qcow2', null],
        ['absent', null, null],
      ],
    );
    const page = await (await fetch(site.url)).text();
    assert.match(page, /Chosen by filters.*fixed<\/span>.*in east.*&lt;x&gt;\.qcow2/s);
    assert.match(page, /absent<\/span>.*no image in provider &quot;east&quot; matches the filters/s);
  });

  it('the API responds as its OpenAPI document says', async (t) => {
    const site = await startWebSite(t);
    const [upload] = await untilUploaded(site);
    const document = (await site.api('/openapi.json')).body as Document;
    const check = checker(document);
    const ids: Readonly<Record<string, string | undefined>> = {
      images: 'docs',
      builds: upload?.['image-id'],
      uploads: upload?.['upload-id'],
    };
    let checked = 0;
    for (const [path, operations] of Object.entries(document.paths)) {
      const { get } = operations;
      if (get === undefined || !('application/json' in (get.responses[200]?.content ?? {}))) continue;
      for (const id of path.includes('{id}') ? [ids[path.split('/')[1] ?? ''], 'none'] : ['']) {
        const { status, body } = await site.api(path.replace('{id}', id ?? ''));
        assert.equal(status, id === 'none' ? 404 : 200, path);
        check(path, 'get', status, 'application/json', body);
        checked += 1;
      }
    }
    assert.ok(checked >= 10, `${checked} responses checked`);
    for (const [path, operations] of Object.entries(document.paths)) {
      for (const method of ['post', 'delete'].filter((name) => name in operations)) {
        const place = path.replace('{id}', 'none');
        const refused = await site.api(place, { method });
        assert.equal(refused.status, 401, path);
        check(path, method, 401, 'application/json', refused.body);
        const missing = await site.api(place, { method, headers: MAY_ACT });
        assert.ok([404, 409].includes(missing.status), `${path}: ${missing.status}`);
        check(path, method, missing.status, 'application/json', missing.body);
      }
    }
    const { status, body } = await site.api('/images/docs/rebuild', { method: 'POST', headers: MAY_ACT });
    assert.equal(status, 202);
    assert.match(
      (body as { readonly done: string }).done,
      /^build docs-\d+-\w+ is queued; a builder starts it/,
    );
    check('/images/{id}/rebuild', 'post', 202, 'application/json', body);
    await waitUntil(
      'another build',
      async () => ((await site.api('/builds')).body as unknown[]).length === 2,
    );
    await site.service.logged(
      /INFO nodepool\.web: token holder at 127\.0\.0\.1: rebuild docs: build docs-\S+ is queued/,
    );
  });

  it('the API pauses and unpauses disk images, and says who paused them', async (t) => {
    const site = await startWebSite(t);
    await untilUploaded(site);
    const act = async (action: string) =>
      await site.api(`/images/docs/${action}`, { method: 'POST', headers: MAY_ACT });
    assert.equal((await site.api('/images/docs/pause', { method: 'POST' })).status, 401);
    assert.deepEqual(await act('pause'), { status: 202, body: { done: 'disk image "docs" is paused' } });
    const { body } = await site.api('/images/docs');
    assert.partialDeepStrictEqual(body, { paused: true, 'paused-by': 'token holder on the status page' });
    assert.ok(Date.parse((body as { readonly 'paused-since': string })['paused-since']) <= Date.now());
    const refused = await act('rebuild');
    assert.equal(refused.status, 409);
    assert.match(
      (refused.body as { readonly error: string }).error,
      /is paused by token holder on the status page since .*Z; run "nodepool-builder image-unpause docs" first/,
    );
    assert.equal((await act('unpause')).status, 202);
    const { body: after } = await site.api('/images/docs');
    assert.partialDeepStrictEqual(after, { paused: false, 'paused-by': null, 'paused-since': null });
  });

  it('the API sends an event for each change', async (t) => {
    const site = await startWebSite(t);
    await untilUploaded(site);
    const stop = new AbortController();
    // fetch cancels the body of a response that is no longer referenced.
    const response = await fetch(`${site.url}/api/v1/events`, { signal: stop.signal });
    assert.match(response.headers.get('content-type') ?? '', /^text\/event-stream/);
    await runInProcess('rebuild', 'docs', '-c', site.config);
    let text = '';
    for await (const chunk of response.body ?? []) {
      text += Buffer.from(chunk).toString();
      if (/^data: .*"images":\["docs"\].*"builds":\["docs-\d+-\w+"\]/m.test(text)) break;
    }
    stop.abort();
    assert.match(text, /^id: \w+-\d+\nevent: change\n/m);
  });

  it('anyone may read the API, and only the token permits changes', async (t) => {
    const site = await startWebSite(t);
    const rebuild = async (headers: Readonly<Record<string, string>>): Promise<number> =>
      (await site.api('/images/docs/rebuild', { method: 'POST', headers })).status;
    assert.equal(await rebuild({}), 401);
    assert.equal(await rebuild({ authorization: `Bearer ${TOKEN}x` }), 401);
    assert.equal(await rebuild({ 'x-forwarded-user': 'alice' }), 401);
    assert.equal(await rebuild({ ...MAY_ACT, origin: 'https://evil.example' }), 403);
    assert.equal(await rebuild(MAY_ACT), 202);
    assert.equal(await statusFor(site.url, { host: 'evil.example' }), 421);
    assert.equal(await statusFor(site.url, { host: 'localhost:1234' }), 200);
  });

  it('the API trusts the header of a listed proxy, and requires its form token', async (t) => {
    const site = await startWebSite(
      t,
      {},
      '--read-only',
      '--web-trusted-header=X-Forwarded-User',
      '--web-trusted-proxy=127.0.0.1',
      '--web-url=https://images.example.org',
    );
    const alice = { 'x-forwarded-user': 'alice' };
    const form = await (await fetch(`${site.url}/actions/rebuild?subject=docs`, { headers: alice })).text();
    const [, token = ''] = /name="token" value="([^"]+)"/.exec(form) ?? [];
    const post = async (headers: Readonly<Record<string, string>>, sent: string): Promise<number> => {
      const body = new URLSearchParams({ token: sent });
      const path = `${site.url}/actions/rebuild?subject=docs`;
      return (await fetch(path, { method: 'POST', headers, body, redirect: 'manual' })).status;
    };
    assert.equal(await post(alice, 'wrong'), 403);
    assert.equal(await post({ ...alice, origin: 'https://evil.example' }, token), 403);
    assert.equal(await post({ ...alice, 'sec-fetch-site': 'same-site' }, token), 403);
    assert.equal(await post({}, token), 401);
    assert.equal(await post({ ...alice, origin: 'https://images.example.org' }, token), 303);
    assert.equal(await statusFor(site.url, { host: 'images.example.org' }), 200);
  });

  it('the API does not trust the proxy’s header from another address', async (t) => {
    const site = await startWebSite(
      t,
      {},
      '--read-only',
      '--web-trusted-header=X-Forwarded-User',
      '--web-trusted-proxy=192.0.2.1',
    );
    const headers = { 'x-forwarded-user': 'alice' };
    assert.equal((await site.api('/images/docs/rebuild', { method: 'POST', headers })).status, 401);
  });

  it('the API rejects a list in place of a text, and a body that is not a form, with 400', async (t) => {
    const site = await startWebSite(t);
    const login = new URLSearchParams({ token: TOKEN });
    const loggedIn = await fetch(`${site.url}/login`, { method: 'POST', body: login, redirect: 'manual' });
    const cookie = loggedIn.headers.getSetCookie()[0]?.split(';')[0] ?? '';
    const queries = [
      '/image-list?fields=id&fields=state',
      '/dib-image-list.json?fields=id&fields=image',
      '/events?since=a&since=b',
      '/actions/rebuild?subject=a&subject=b',
      '/api/v1/builds/none/log?offset=1&offset=2',
      '/api/v1/builds/none/log/events?offset=a',
      '/builds/none/log/events?offset=1&offset=2',
    ];
    for (const query of queries) {
      const { status } = await fetch(site.url + query, { headers: { cookie } });
      assert.equal(status, 400, query);
    }
    const unknown = await (await fetch(`${site.url}/api/v1/builds/a%C2%9B2J`)).text();
    assert.match(unknown, /a\\u009b2J is not in builds/);
    for (const path of ['/login', '/logout', '/actions/rebuild?subject=docs']) {
      for (const sent of [{ token: ['a'] }, { token: { a: 1 } }, [], 'a', 1]) {
        const headers = { cookie, 'content-type': 'application/json' };
        const body = JSON.stringify(sent);
        const { status } = await fetch(site.url + path, { method: 'POST', headers, body });
        assert.equal(status, 400, `${path} ${body}`);
      }
    }
  });

  it('logging out ends a user’s session, so that a copy of the cookie is worthless', async (t) => {
    const site = await startWebSite(t);
    const post = async (path: string, token: string, cookie = ''): Promise<Response> => {
      const body = new URLSearchParams({ token });
      return await fetch(site.url + path, { method: 'POST', headers: { cookie }, body, redirect: 'manual' });
    };
    const loggedIn = await post('/login', TOKEN);
    const cookie = loggedIn.headers.getSetCookie()[0]?.split(';')[0] ?? '';
    const form = await (
      await fetch(`${site.url}/actions/rebuild?subject=docs`, { headers: { cookie } })
    ).text();
    const [, token = ''] = /name="token" value="([^"]+)"/.exec(form) ?? [];
    assert.equal((await post('/logout', token, cookie)).status, 303);
    assert.equal((await post('/actions/rebuild?subject=docs', token, cookie)).status, 401);
  });

  it('nodepool’s web addresses return text and JSON', async (t) => {
    const site = await startWebSite(t);
    const [upload] = await untilUploaded(site);
    const get = async (
      path: string,
      accept?: string,
    ): Promise<readonly [type: string | null, text: string]> => {
      const response = await fetch(site.url + path, accept === undefined ? {} : { headers: { accept } });
      assert.equal(response.headers.get('access-control-allow-origin'), null);
      return [response.headers.get('content-type'), await response.text()];
    };
    assert.equal(await (await fetch(`${site.url}/ready`)).text(), 'OK');
    const browser = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';
    const [type, text] = await get('/image-list?fields=provider,image,state', browser);
    assert.equal(type, 'text/plain; charset=UTF-8');
    assert.deepEqual(text.split('\n').toSpliced(3).concat(text.split('\n').slice(3).toSorted()), [
      '+----------+-------+-------+',
      '| Provider | Image | State |',
      '+----------+-------+-------+',
      '+----------+-------+-------+',
      '| east     | docs  | ready |',
      '| west     | docs  | ready |',
    ]);
    const [jsonType, json] = await get('/image-list', 'application/json');
    assert.match(jsonType ?? '', /^application\/json/);
    const found = (JSON.parse(json) as BuildOrUpload[]).find(
      (one) => one.upload_id === upload?.['upload-id'],
    );
    assert.equal(found?.id, upload?.['image-id']);
    const [build] = JSON.parse((await get('/dib-image-list.json'))[1]) as BuildOrUpload[];
    assert.deepEqual([build?.image, build?.state, build?.formats], ['docs', 'ready', ['qcow2']]);
    assert.deepEqual(JSON.parse((await get('/image-status', 'application/json'))[1]), [
      { image: 'docs', paused: false, build_request: null },
    ]);
  });
});
