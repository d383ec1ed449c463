// Not a unit test: it starts servers.
import assert from 'node:assert/strict';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { uploadSmallBlob } from '../src/blob-upload.ts';
import { requestFor, writeDisk } from './disk.ts';
import { removeRegistry, startRegistry } from './docker-registry.ts';
import { ociFixture, openProvider, writeAuthFile } from './oci-fixture.ts';
import { ask, tagsOf } from './registry-content.ts';
import { openRegistry, SIGNAL } from './registry-fixture.ts';

test('docker’s image under a tag blocks an upload to the tag', async (t) => {
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

test('a registry without deletions is a problem for the diagnosis and deletions, not for a new upload', async (t) => {
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
    results.map(({ status }) => status),
    ['ok', 'ok', 'problem'],
  );
  assert.match(results.at(-1)?.message ?? '', /the registry forbids deletions/);
  await provider.upload({ ...request, uploadId: 'second' });
  assert.deepEqual(
    (await provider.list()).map(({ uploadId }) => uploadId),
    ['second'],
  );
  assert.match(lines.join('\n'), /the replaced image remains without a tag/);
  assert.deepEqual(await tagsOf(registry), ['debian-debian-0000000001', 'debian-latest']);
});

test('a registry’s redirect to another host causes an error that names it', async (t) => {
  const { registry } = await openRegistry(t, (_request, response) => {
    response.writeHead(307, { location: 'https://registry.example.com/v2/ci/images/' }).end();
  });
  const expected = /^provider ci: GET tags: http:\/\/.+ redirects to https:\/\/registry\.example\.com;/;
  await assert.rejects(registry.tags(SIGNAL), { code: 'bad-request', message: expected });
  await assert.rejects(registry.manifest('a', SIGNAL), { code: 'bad-request' });
});

test('a web site in place of a registry causes an error', async (t) => {
  const { registry, requests } = await openRegistry(t, (_request, response) => response.end('<html>'));
  await assert.rejects(registry.tags(SIGNAL), /127\.0\.0\.1:\d+ is not a registry: it is not JSON/);
  assert.equal(requests.length, 1);
});

test('no bytes are sent to a registry’s location without TLS', async (t) => {
  const { registry, requests } = await openRegistry(
    t,
    (request, response) => {
      const location = 'http://storage.invalid/uploads/1';
      if (request.method === 'HEAD') response.writeHead(404).end();
      else response.writeHead(202, { location }).end();
    },
    { isSecure: true },
  );
  await assert.rejects(
    uploadSmallBlob(registry, Buffer.from('secret'), async () => {}, SIGNAL),
    {
      code: 'bad-request',
      message: /^provider ci: the registry returned a location without TLS, http:\/\/storage\.invalid/,
    },
  );
  assert.deepEqual(
    requests.map((line) => line.split(' ')[0]),
    ['HEAD', 'POST'],
  );
});

test('all pages of a registry’s tags are read', async (t) => {
  const { registry } = await openRegistry(t, (request, response) => {
    const last = new URL(request.url ?? '', 'http://localhost').searchParams.get('last');
    if (last === null) response.setHeader('link', '</v2/ci/images/tags/list?n=1&last=a>; rel="next"');
    response.end(JSON.stringify({ name: 'ci/images', tags: [last === null ? 'a' : 'b'] }));
  });
  assert.deepEqual(await registry.tags(SIGNAL), ['a', 'b']);
});

test('the locations of a registry behind a load balancer are requested at its endpoint', async (t) => {
  const origins = ['http://registry.internal.invalid:5000', 'https://127.0.0.1', 'http://127.0.0.1:1', ''];
  for (const isSecure of [true, false]) {
    const { registry, requests } = await openRegistry(
      t,
      ({ method }, response) => {
        const origin = origins[requests.length % origins.length];
        if (method === 'HEAD') response.writeHead(404).end();
        else if (method === 'PUT') response.writeHead(201).end();
        else
          response.writeHead(202, { location: `${origin}/v2/ci/images/blobs/uploads/1?_state=a%2Bb` }).end();
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
    (request, response) => {
      if (request.headers.authorization !== 'Basic dTpw') {
        response.writeHead(401, { 'www-authenticate': 'Basic realm=r' }).end();
        return;
      }
      const last = new URL(request.url ?? '', 'http://localhost').searchParams.get('last');
      const link = '<https://registry.internal.invalid/v2/ci/images/tags/list?n=1&last=a>; rel="next"';
      if (last === null) response.setHeader('link', link);
      response.end(JSON.stringify({ name: 'ci/images', tags: [last === null ? 'a' : 'b'] }));
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
  test(`a registry that rejects more than ${limit} tags with ${status} is queried for fewer`, async (t) => {
    const all = Array.from({ length: 120 }, (_, index) => `tag-${String(index).padStart(3, '0')}`);
    const { registry } = await openRegistry(t, (request, response) => {
      const query = new URL(request.url ?? '', 'http://localhost').searchParams;
      const size = Number(query.get('n') ?? 30);
      const errors = [{ code: 'PAGINATION_NUMBER_INVALID', message: 'requested limit is too high' }];
      if (size > limit) {
        response.writeHead(status).end(JSON.stringify({ errors }));
        return;
      }
      const rest = all.filter((tag) => tag > (query.get('last') ?? ''));
      const tags = rest.slice(0, size);
      const link = `</v2/ci/images/tags/list?n=${size}&last=${tags.at(-1)}>; rel="next"`;
      if (rest.length > size) response.setHeader('link', link);
      response.end(JSON.stringify({ name: 'ci/images', tags }));
    });
    assert.deepEqual(await registry.tags(SIGNAL), all);
  });
}

test('the error for a registry that rejects each page is the first one, without another request’s remedy', async (t) => {
  const { registry, requests } = await openRegistry(t, (_request, response) => {
    const message = 'requested limit is too high';
    response.writeHead(413).end(JSON.stringify({ errors: [{ code: 'TOO_MANY_TAGS_REQUESTED', message }] }));
  });
  await assert.rejects(registry.tags(SIGNAL), {
    code: 'too-large',
    message: 'provider ci: GET tags: requested limit is too high (TOO_MANY_TAGS_REQUESTED)',
  });
  assert.deepEqual(requests, [
    'GET /v2/ci/images/tags/list?n=1000',
    'GET /v2/ci/images/tags/list?n=100',
    'GET /v2/ci/images/tags/list',
  ]);
});

test('the remedy in a registry’s error fits the request', async (t) => {
  const { registry } = await openRegistry(t, (request, response) => {
    const status = Number(/\/status-(\d+)/.exec(request.url ?? '')?.[1]);
    response.writeHead(status).end('{}');
  });
  const remedyOf = async (method: 'GET' | 'PUT' | 'DELETE', status: number): Promise<string> => {
    const sent = registry.send({ task: 'X', method, path: `status-${status}`, signal: SIGNAL });
    const error = (await sent.catch((reason: unknown) => reason)) as Error;
    return error.message.replace(/^provider ci: X: status \d+(; )?/, '');
  };
  assert.equal(await remedyOf('GET', 413), '');
  assert.match(await remedyOf('PUT', 413), /^increase the request size limit/);
  assert.match(await remedyOf('PUT', 404), /^create the repository/);
  assert.equal(await remedyOf('GET', 404), '');
  assert.match(await remedyOf('DELETE', 403), /permission to delete$/);
  assert.match(await remedyOf('GET', 403), /^give the credentials this permission/);
  assert.match(await remedyOf('GET', 507), /^delete what is not needed/);
});

test('a token service that responds with 404 does not make an image appear missing', async (t) => {
  const { registry } = await openRegistry(t, (request, response) => {
    if (request.url?.startsWith('/token')) response.writeHead(404).end('{}');
    else
      response
        .writeHead(401, { 'www-authenticate': `Bearer realm="http://${request.headers.host}/token"` })
        .end();
  });
  await assert.rejects(registry.tags(SIGNAL), { code: 'auth-failed', message: /token of 127\.0\.0\.1/ });
  await assert.rejects(registry.manifest('a', SIGNAL), { code: 'auth-failed' });
});

test('a busy registry is queried again after the time that it names', async (t) => {
  let count = 0;
  const { registry } = await openRegistry(t, (_request, response) => {
    count += 1;
    if (count < 3) response.writeHead(count === 1 ? 429 : 503, { 'retry-after': '0' });
    response.end(JSON.stringify({ name: 'ci/images', tags: null }));
  });
  assert.deepEqual(await registry.tags(SIGNAL), []);
  assert.equal(count, 3);
});
