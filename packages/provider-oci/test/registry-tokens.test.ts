// Not a unit test: it starts servers.
import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { type TestContext, test } from 'node:test';
import { cancelUpload } from '../src/blob-upload.ts';
import type { Credentials } from '../src/credentials.ts';
import { type Opened, openRegistry, SIGNAL } from './registry-fixture.ts';

/** Starts a registry with a token service. `check` inspects a token request. */
async function openWithTokens(
  t: TestContext,
  credentials: Credentials,
  check: (request: IncomingMessage, form: URLSearchParams) => void,
): Promise<Opened & { readonly expire: () => void }> {
  let valid = 0;
  const opened: Opened = await openRegistry(
    t,
    (request, response) => {
      const url = new URL(request.url ?? '', 'http://localhost');
      if (url.pathname !== '/token') {
        if (valid > 0 && request.headers.authorization === `Bearer token-${valid}`) {
          return response.end(JSON.stringify({ name: 'ci/images', tags: ['a'] }));
        }
        const parameters = `realm="${opened.url}/token",service="registry",scope="repository:ci/images:pull"`;
        return response.writeHead(401, { 'www-authenticate': `Bearer ${parameters}` }).end();
      }
      let text = '';
      return request
        .on('data', (piece) => {
          text += String(piece);
        })
        .on('end', () => {
          check(request, request.method === 'POST' ? new URLSearchParams(text) : url.searchParams);
          valid += 1;
          response.end(JSON.stringify({ [valid % 2 === 0 ? 'token' : 'access_token']: `token-${valid}` }));
        });
    },
    { credentials },
  );
  return {
    ...opened,
    expire: () => {
      valid += 1;
    },
  };
}

test('a registry password is exchanged for tokens, and an expired token is replaced', async (t) => {
  const seen: unknown[] = [];
  const { registry, requests, expire } = await openWithTokens(
    t,
    { username: 'builder', password: 'a:b' },
    ({ headers: { authorization } }, form) =>
      seen.push([authorization, form.get('service'), form.get('scope')]),
  );
  await registry.tags(SIGNAL);
  await registry.tags(SIGNAL);
  expire();
  await registry.tags(SIGNAL);
  const wanted = [
    `Basic ${Buffer.from('builder:a:b').toString('base64')}`,
    'registry',
    'repository:ci/images:pull',
  ];
  assert.deepEqual(seen, [wanted, wanted]);
  assert.equal(requests.length, 7);
});

test('a registry password that is rejected as expired with 403 is read again', async (t) => {
  let password = 'first';
  const credentials: Credentials = {
    username: 'AWS',
    get password() {
      return password;
    },
  };
  const { registry, requests } = await openRegistry(
    t,
    ({ headers: { authorization } }, response) => {
      const [, sent] = Buffer.from(authorization?.slice('Basic '.length) ?? '', 'base64')
        .toString()
        .split(':');
      if (sent === undefined) response.writeHead(401, { 'www-authenticate': 'Basic realm="ecr"' }).end();
      else if (sent === password) response.end(JSON.stringify({ name: 'ci/images', tags: ['a'] }));
      else response.writeHead(403).end(JSON.stringify({ errors: [{ code: 'DENIED', message: 'expired' }] }));
    },
    { credentials },
  );
  assert.deepEqual(await registry.tags(SIGNAL), ['a']);
  password = 'second';
  assert.deepEqual(await registry.tags(SIGNAL), ['a']);
  assert.equal(requests.length, 4);
});

test('a registry request that lacks a right is not repeated with the same password', async (t) => {
  const { registry, requests } = await openRegistry(
    t,
    ({ method, headers: { authorization } }, response) => {
      if (authorization === undefined)
        response.writeHead(401, { 'www-authenticate': 'Basic realm="a"' }).end();
      else if (method === 'GET') response.end(JSON.stringify({ name: 'ci/images', tags: ['a'] }));
      else response.writeHead(403).end();
    },
    { credentials: { username: 'builder', password: 'a' } },
  );
  await registry.tags(SIGNAL);
  for (const length of [4, 3, 3]) {
    await assert.rejects(registry.putManifest('a', 'b', '{}', SIGNAL), { code: 'forbidden' });
    assert.equal(requests.length, length);
    requests.length = 2;
  }
});

test('an account that may not delete can cancel an upload to a registry', async (t) => {
  const { registry, url, requests } = await openRegistry(
    t,
    ({ url: path = '', headers: { authorization } }, response) => {
      if (path.startsWith('/token')) return response.end(JSON.stringify({ token: 'pull-and-push' }));
      const realm = `Bearer realm="${url}/token",scope="repository:ci/images:delete"`;
      return response.writeHead(401, { 'www-authenticate': realm }).end(authorization);
    },
  );
  await cancelUpload(registry, `${url}/v2/ci/images/blobs/uploads/1`, SIGNAL);
  assert.equal(requests.length, 3);
});

test('a repository that vanishes between two pages of its tags causes an error', async (t) => {
  const { registry } = await openRegistry(t, ({ url: path = '' }, response) => {
    if (path.includes('last=')) return response.writeHead(404).end();
    response.setHeader('link', '</v2/ci/images/tags/list?n=1&last=a>; rel="next"');
    return response.end(JSON.stringify({ name: 'ci/images', tags: ['a'] }));
  });
  await assert.rejects(registry.tags(SIGNAL), { code: 'not-found' });
});

test('an identity token is exchanged for tokens, in a body that is not logged', async (t) => {
  const seen: unknown[] = [];
  const { registry, requests } = await openWithTokens(t, { identityToken: 'refresh' }, ({ headers }, form) =>
    seen.push([headers.authorization, form.get('grant_type'), form.get('refresh_token'), form.get('scope')]),
  );
  assert.deepEqual(await registry.tags(SIGNAL), ['a']);
  assert.deepEqual(seen, [[undefined, 'refresh_token', 'refresh', 'repository:ci/images:pull']]);
  assert.ok(!requests.join().includes('refresh'));
});

test('the error for an unreachable token service names it', async (t) => {
  const { registry } = await openRegistry(t, (_request, response) => {
    response.writeHead(401, { 'www-authenticate': 'Bearer realm="http://127.0.0.1:1/token"' }).end();
  });
  await assert.rejects(registry.tags(SIGNAL), {
    code: 'connection-failed',
    message: /^provider ci: token of 127\.0\.0\.1:1: no response: .*ECONNREFUSED/,
  });
});
