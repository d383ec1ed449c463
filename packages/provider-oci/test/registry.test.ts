// Not a unit test: it starts servers.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import type { IncomingMessage, RequestListener, Server } from 'node:http';
import { createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { createAuthority } from '../../../test/fixtures/certificate-authority.ts';
import { cancelUpload, uploadSmallBlob } from '../src/blob-upload.ts';
import type { Credentials } from '../src/credentials.ts';
import { Registry } from '../src/registry.ts';
import { parseChallenge } from '../src/registry-auth.ts';
import { requestFor, writeDisk } from './disk.ts';
import { removeRegistry, startRegistry } from './docker-registry.ts';
import { ociFixture, openProvider, writeAuthFile } from './oci-fixture.ts';
import { ask, tagsOf } from './registry-content.ts';

const { signal: SIGNAL } = new AbortController();

interface Opened {
  readonly registry: Registry;
  readonly url: string;
  /** Methods and paths of the requests so far. */
  readonly requests: string[];
}

/** Starts a server that answers as the test says. */
async function openRegistry(
  t: TestContext,
  listener: RequestListener,
  { isSecure = false, credentials }: { isSecure?: boolean; credentials?: Credentials } = {},
): Promise<Opened> {
  const requests: string[] = [];
  const record: RequestListener = (request, answer) => {
    requests.push(`${request.method} ${request.url}`);
    return listener(request, answer);
  };
  let server: Server = createServer(record);
  let caFile: string | undefined;
  if (isSecure) {
    const directory = await mkdtemp(join(tmpdir(), 'oci-'));
    t.after(() => rm(directory, { recursive: true }));
    const authority = await createAuthority(join(directory, 'authority'));
    const { cert, key } = await authority.issue('registry', '127.0.0.1');
    server = createTlsServer({ cert: await readFile(cert), key: await readFile(key) }, record);
    caFile = authority.ca;
  }
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const url = `${isSecure ? 'https' : 'http'}://${host}`;
  const registry = new Registry({
    name: 'ci',
    endpoint: new URL(url),
    repository: { host, path: 'ci/images' },
    credentials: async () => await Promise.resolve(credentials),
    caFile,
    retry: { attempts: 3, firstDelay: 0.001 },
  });
  return { registry, url, requests };
}

test('an image of docker occupies its tag', async (t) => {
  const fixture = await ociFixture(t);
  const { directory, registry } = fixture;
  const path = join(directory, 'disk.qcow2');
  await writeDisk(path, 1);
  const provider = fixture.open();
  await provider.upload(await requestFor(path, 2));
  const { body } = await ask(registry, 'manifests/debian-latest');
  const { config, layers } = JSON.parse(body.toString());
  const type = 'application/vnd.docker.distribution.manifest.v2+json';
  const manifest = {
    schemaVersion: 2,
    mediaType: type,
    config: { ...config, mediaType: 'application/vnd.docker.container.image.v1+json' },
    layers: layers.map((layer: object) => ({
      ...layer,
      mediaType: 'application/vnd.docker.image.rootfs.diff.tar.gzip',
    })),
  };
  const put = {
    method: 'PUT',
    headers: { 'content-type': type },
    body: JSON.stringify(manifest),
  };
  const { status } = await ask(registry, 'manifests/debian-debian-0000000001', put);
  assert.equal(status, 201);
  await assert.rejects(provider.upload(await requestFor(path, 1)), { code: 'provider-refused' });
  assert.equal((await provider.list()).length, 1);
  const { headers } = await ask(registry, 'manifests/debian-debian-0000000001', {
    headers: { accept: type },
  });
  assert.equal(headers['content-type'], type);
});

test('a registry without deletions is a problem for doctor and deletions, not for a new upload', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'oci-'));
  const registry = await startRegistry(join(directory, 'registry'), undefined, false);
  t.after(() => removeRegistry(registry, directory));
  const { host, caFile } = registry;
  const settings = {
    repository: `${host}/ci/images`,
    'auth-file': await writeAuthFile(directory, host),
    'ca-file': caFile,
  };
  const lines: string[] = [];
  const provider = openProvider(settings, directory, lines);
  const path = join(directory, 'disk.qcow2');
  await writeDisk(path, 1);
  const request = await requestFor(path);
  const { externalId } = await provider.upload(request);
  await assert.rejects(provider.delete(externalId), /the registry forbids deletions/);
  const results = await Array.fromAsync(provider.diagnose());
  assert.deepEqual(
    results.map(({ state }) => state),
    ['ok', 'ok', 'problem'],
  );
  assert.match(results.at(-1)?.finding ?? '', /the registry forbids deletions/);
  await provider.upload({ ...request, uploadId: 'second' });
  assert.deepEqual(
    (await provider.list()).map(({ uploadId }) => uploadId),
    ['second'],
  );
  assert.match(lines.join('\n'), /the image that was replaced stays without a tag/);
  assert.deepEqual(await tagsOf(registry), ['debian-debian-0000000001', 'debian-latest']);
});

test('a redirect to another host is an error that names it', async (t) => {
  const { registry } = await openRegistry(t, (_request, answer) => {
    answer.writeHead(307, { location: 'https://registry.example.com/v2/ci/images/' }).end();
  });
  const expected = /^provider ci: GET tags: http:\/\/.+ redirects to https:\/\/registry\.example\.com;/;
  await assert.rejects(registry.tags(SIGNAL), { code: 'bad-request', message: expected });
  await assert.rejects(registry.manifest('a', SIGNAL), { code: 'bad-request' });
});

test('a web site that is no registry is an error', async (t) => {
  const { registry, requests } = await openRegistry(t, (_request, answer) => answer.end('<html>'));
  await assert.rejects(registry.tags(SIGNAL), /127\.0\.0\.1:\d+ is not a registry: it is not JSON/);
  assert.equal(requests.length, 1);
});

test('no bytes travel to a location without TLS', async (t) => {
  const { registry, requests } = await openRegistry(
    t,
    (request, answer) => {
      const location = 'http://storage.invalid/uploads/1';
      if (request.method === 'HEAD') answer.writeHead(404).end();
      else answer.writeHead(202, { location }).end();
    },
    { isSecure: true },
  );
  await assert.rejects(
    uploadSmallBlob(registry, Buffer.from('secret'), async () => {}, SIGNAL),
    {
      code: 'bad-request',
      message: /^provider ci: the registry names a location without TLS, http:\/\/storage\.invalid/,
    },
  );
  assert.deepEqual(
    requests.map((line) => line.split(' ')[0]),
    ['HEAD', 'POST'],
  );
});

test('all pages of the tags are read', async (t) => {
  const { registry } = await openRegistry(t, (request, answer) => {
    const last = new URL(request.url ?? '', 'http://localhost').searchParams.get('last');
    if (last === null) answer.setHeader('link', '</v2/ci/images/tags/list?n=1&last=a>; rel="next"');
    answer.end(JSON.stringify({ name: 'ci/images', tags: [last === null ? 'a' : 'b'] }));
  });
  assert.deepEqual(await registry.tags(SIGNAL), ['a', 'b']);
});

test('the locations of a registry behind a balancer are requested at its endpoint', async (t) => {
  const origins = ['http://registry.internal.invalid:5000', 'https://127.0.0.1', 'http://127.0.0.1:1', ''];
  for (const isSecure of [true, false]) {
    const { registry, requests } = await openRegistry(
      t,
      ({ method }, answer) => {
        const origin = origins[requests.length % origins.length];
        if (method === 'HEAD') answer.writeHead(404).end();
        else if (method === 'PUT') answer.writeHead(201).end();
        else answer.writeHead(202, { location: `${origin}/v2/ci/images/blobs/uploads/1?_state=a%2Bb` }).end();
      },
      { isSecure },
    );
    for (const content of ['1', '2', '3', '4']) {
      await uploadSmallBlob(registry, Buffer.from(content), async () => {}, SIGNAL);
    }
    const puts = requests.filter((line) => line.startsWith('PUT'));
    assert.equal(puts.length, 4);
    for (const line of puts) {
      assert.match(line, /^PUT \/v2\/ci\/images\/blobs\/uploads\/1\?_state=a%2Bb&digest=sha256%3A/);
    }
  }
});

test('a link to the next tags that names another host is followed at the endpoint, with the token', async (t) => {
  const { registry } = await openRegistry(
    t,
    (request, answer) => {
      if (request.headers.authorization !== 'Basic dTpw') {
        answer.writeHead(401, { 'www-authenticate': 'Basic realm=r' }).end();
        return;
      }
      const last = new URL(request.url ?? '', 'http://localhost').searchParams.get('last');
      const link = '<https://registry.internal.invalid/v2/ci/images/tags/list?n=1&last=a>; rel="next"';
      if (last === null) answer.setHeader('link', link);
      answer.end(JSON.stringify({ name: 'ci/images', tags: [last === null ? 'a' : 'b'] }));
    },
    { credentials: { username: 'u', password: 'p' } },
  );
  assert.deepEqual(await registry.tags(SIGNAL), ['a', 'b']);
});

for (const [limit, status] of [
  [100, 413],
  [100, 400],
  [50, 400],
] as const) {
  test(`a registry that refuses more than ${limit} tags with ${status} is asked for fewer`, async (t) => {
    const all = Array.from({ length: 120 }, (_, index) => `tag-${String(index).padStart(3, '0')}`);
    const { registry } = await openRegistry(t, (request, answer) => {
      const query = new URL(request.url ?? '', 'http://localhost').searchParams;
      const size = Number(query.get('n') ?? 30);
      const errors = [{ code: 'PAGINATION_NUMBER_INVALID', message: 'requested limit is too high' }];
      if (size > limit) {
        answer.writeHead(status).end(JSON.stringify({ errors }));
        return;
      }
      const rest = all.filter((tag) => tag > (query.get('last') ?? ''));
      const tags = rest.slice(0, size);
      const link = `</v2/ci/images/tags/list?n=${size}&last=${tags.at(-1)}>; rel="next"`;
      if (rest.length > size) answer.setHeader('link', link);
      answer.end(JSON.stringify({ name: 'ci/images', tags }));
    });
    assert.deepEqual(await registry.tags(SIGNAL), all);
  });
}

test('the error of a registry that refuses each page is the first one, with no remedy for another request', async (t) => {
  const { registry, requests } = await openRegistry(t, (_request, answer) => {
    const message = 'requested limit is too high';
    answer.writeHead(413).end(JSON.stringify({ errors: [{ code: 'TOO_MANY_TAGS_REQUESTED', message }] }));
  });
  await assert.rejects(registry.tags(SIGNAL), {
    code: 'bad-request',
    message: 'provider ci: GET tags: requested limit is too high (TOO_MANY_TAGS_REQUESTED)',
  });
  assert.deepEqual(requests, [
    'GET /v2/ci/images/tags/list?n=1000',
    'GET /v2/ci/images/tags/list?n=100',
    'GET /v2/ci/images/tags/list',
  ]);
});

test('the remedy of an error fits the request', async (t) => {
  const { registry } = await openRegistry(t, (request, answer) => {
    const status = Number(/\/status-(\d+)/.exec(request.url ?? '')?.[1]);
    answer.writeHead(status).end('{}');
  });
  const remedyOf = async (method: 'GET' | 'PUT' | 'DELETE', status: number): Promise<string> => {
    const sent = registry.send({ task: 'X', method, path: `status-${status}`, signal: SIGNAL });
    const error = (await sent.catch((reason: unknown) => reason)) as Error;
    return error.message.replace(/^provider ci: X: status \d+(; )?/, '');
  };
  assert.equal(await remedyOf('GET', 413), '');
  assert.match(await remedyOf('PUT', 413), /^raise the length of requests/);
  assert.match(await remedyOf('PUT', 404), /^create the repository/);
  assert.equal(await remedyOf('GET', 404), '');
  assert.match(await remedyOf('DELETE', 403), /permission to delete$/);
  assert.match(await remedyOf('GET', 403), /^give the credentials this permission/);
  assert.match(await remedyOf('GET', 507), /^delete what is not needed/);
});

test('nothing is missing because the token service does not exist', async (t) => {
  const { registry } = await openRegistry(t, (request, answer) => {
    if (request.url?.startsWith('/token')) answer.writeHead(404).end('{}');
    else
      answer
        .writeHead(401, { 'www-authenticate': `Bearer realm="http://${request.headers.host}/token"` })
        .end();
  });
  await assert.rejects(registry.tags(SIGNAL), { code: 'auth-failed', message: /token of 127\.0\.0\.1/ });
  await assert.rejects(registry.manifest('a', SIGNAL), { code: 'auth-failed' });
});

test('a registry that is busy is asked again, after the time that it names', async (t) => {
  let count = 0;
  const { registry } = await openRegistry(t, (_request, answer) => {
    count += 1;
    if (count < 3) answer.writeHead(count === 1 ? 429 : 503, { 'retry-after': '0' });
    answer.end(JSON.stringify({ name: 'ci/images', tags: null }));
  });
  assert.deepEqual(await registry.tags(SIGNAL), []);
  assert.equal(count, 3);
});

/** A registry with a token service. `check` looks at a request for a token. */
async function openWithTokens(
  t: TestContext,
  credentials: Credentials,
  check: (request: IncomingMessage, form: URLSearchParams) => void,
): Promise<Opened & { readonly expire: () => void }> {
  let valid = 0;
  const opened: Opened = await openRegistry(
    t,
    (request, answer) => {
      const url = new URL(request.url ?? '', 'http://localhost');
      if (url.pathname !== '/token') {
        if (valid > 0 && request.headers.authorization === `Bearer token-${valid}`) {
          return answer.end(JSON.stringify({ name: 'ci/images', tags: ['a'] }));
        }
        const parameters = `realm="${opened.url}/token",service="registry",scope="repository:ci/images:pull"`;
        return answer.writeHead(401, { 'www-authenticate': `Bearer ${parameters}` }).end();
      }
      let text = '';
      return request
        .on('data', (piece) => {
          text += String(piece);
        })
        .on('end', () => {
          check(request, request.method === 'POST' ? new URLSearchParams(text) : url.searchParams);
          valid += 1;
          answer.end(JSON.stringify({ [valid % 2 === 0 ? 'token' : 'access_token']: `token-${valid}` }));
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

test('a password buys tokens, and an expired token is replaced', async (t) => {
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

test('a password that a registry refuses as expired with 403 is read again', async (t) => {
  let password = 'first';
  const credentials: Credentials = {
    username: 'AWS',
    get password() {
      return password;
    },
  };
  const { registry, requests } = await openRegistry(
    t,
    ({ headers: { authorization } }, answer) => {
      const [, sent] = Buffer.from(authorization?.slice('Basic '.length) ?? '', 'base64')
        .toString()
        .split(':');
      if (sent === undefined) answer.writeHead(401, { 'www-authenticate': 'Basic realm="ecr"' }).end();
      else if (sent === password) answer.end(JSON.stringify({ name: 'ci/images', tags: ['a'] }));
      else answer.writeHead(403).end(JSON.stringify({ errors: [{ code: 'DENIED', message: 'expired' }] }));
    },
    { credentials },
  );
  assert.deepEqual(await registry.tags(SIGNAL), ['a']);
  password = 'second';
  assert.deepEqual(await registry.tags(SIGNAL), ['a']);
  assert.equal(requests.length, 4);
});

test('a request that a right is missing for is not repeated with the same password', async (t) => {
  const { registry, requests } = await openRegistry(
    t,
    ({ method, headers: { authorization } }, answer) => {
      if (authorization === undefined) answer.writeHead(401, { 'www-authenticate': 'Basic realm="a"' }).end();
      else if (method === 'GET') answer.end(JSON.stringify({ name: 'ci/images', tags: ['a'] }));
      else answer.writeHead(403).end();
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

test('an account that may not delete can give an upload up', async (t) => {
  const { registry, url, requests } = await openRegistry(
    t,
    ({ url: path = '', headers: { authorization } }, answer) => {
      if (path.startsWith('/token')) return answer.end(JSON.stringify({ token: 'pull-and-push' }));
      const realm = `Bearer realm="${url}/token",scope="repository:ci/images:delete"`;
      return answer.writeHead(401, { 'www-authenticate': realm }).end(authorization);
    },
  );
  await cancelUpload(registry, `${url}/v2/ci/images/blobs/uploads/1`, SIGNAL);
  assert.equal(requests.length, 3);
});

test('a repository that vanishes between two pages of its tags is an error', async (t) => {
  const { registry } = await openRegistry(t, ({ url: path = '' }, answer) => {
    if (path.includes('last=')) return answer.writeHead(404).end();
    answer.setHeader('link', '</v2/ci/images/tags/list?n=1&last=a>; rel="next"');
    return answer.end(JSON.stringify({ name: 'ci/images', tags: ['a'] }));
  });
  await assert.rejects(registry.tags(SIGNAL), { code: 'not-found' });
});

test('an identity token buys tokens, in a body that is not logged', async (t) => {
  const seen: unknown[] = [];
  const { registry, requests } = await openWithTokens(t, { identityToken: 'refresh' }, ({ headers }, form) =>
    seen.push([headers.authorization, form.get('grant_type'), form.get('refresh_token'), form.get('scope')]),
  );
  assert.deepEqual(await registry.tags(SIGNAL), ['a']);
  assert.deepEqual(seen, [[undefined, 'refresh_token', 'refresh', 'repository:ci/images:pull']]);
  assert.ok(!requests.join().includes('refresh'));
});

test('a token service that is away is named in the error', async (t) => {
  const { registry } = await openRegistry(t, (_request, answer) => {
    answer.writeHead(401, { 'www-authenticate': 'Bearer realm="http://127.0.0.1:1/token"' }).end();
  });
  await assert.rejects(registry.tags(SIGNAL), {
    code: 'connection-failed',
    message: /^provider ci: token of 127\.0\.0\.1:1: no answer: .*ECONNREFUSED/,
  });
});

test('challenges', () => {
  const bearer =
    'Bearer realm="https://a.example.com/token?a=b, c",Service="of a",scope="repository:a:pull,push"';
  const expected = {
    scheme: 'bearer',
    parameters: {
      realm: 'https://a.example.com/token?a=b, c',
      service: 'of a',
      scope: 'repository:a:pull,push',
    },
  };
  assert.deepEqual(parseChallenge(bearer), expected);
  assert.deepEqual(parseChallenge(`Negotiate, ${bearer}, Basic realm="b"`), expected);
  assert.deepEqual(parseChallenge('BASIC realm="a"'), { scheme: 'basic', parameters: { realm: 'a' } });
  assert.deepEqual(parseChallenge('Basic'), { scheme: 'basic', parameters: {} });
  for (const other of [undefined, '', 'Negotiate', '="', 'realm="Basic"']) {
    assert.equal(parseChallenge(other), undefined);
  }
});
