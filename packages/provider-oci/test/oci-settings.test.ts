import assert from 'node:assert/strict';
import { test } from 'node:test';
import { endpointOf, parseRepository } from '../src/oci-settings.ts';
import { parseChallenge } from '../src/registry-auth.ts';

test('a repository has a registry, and a path in lower case', () => {
  assert.deepEqual(parseRepository('localhost:5000/a'), { host: 'localhost:5000', path: 'a' });
  assert.deepEqual(parseRepository('r.example.com/a-b/c__d.e'), {
    host: 'r.example.com',
    path: 'a-b/c__d.e',
  });
  for (const text of [
    'ci/images',
    'r.example.com',
    'r.example.com/',
    'r.example.com/A',
    'https://r.example.com/a',
    'u@r.example.com/a',
    'r.example.com/a:b',
    'r.example.com/../a',
  ]) {
    assert.equal(parseRepository(text), undefined, text);
  }
});

test('the registry is the repository’s host, unless an endpoint is configured', () => {
  const hub = parseRepository('docker.io/ci/images');
  assert.ok(hub);
  assert.equal(endpointOf({}, hub).href, 'https://registry-1.docker.io/');
  assert.equal(endpointOf({}, { host: 'r.example.com:5000', path: 'a' }).href, 'https://r.example.com:5000/');
  assert.equal(endpointOf({ endpoint: 'http://127.0.0.1:5000' }, hub).href, 'http://127.0.0.1:5000/');
});

test('a registry’s challenge has a scheme and parameters', () => {
  assert.deepEqual(
    parseChallenge('Bearer realm="https://a/token",service="r",scope="repository:a/b:pull,push"'),
    {
      scheme: 'bearer',
      parameters: { realm: 'https://a/token', service: 'r', scope: 'repository:a/b:pull,push' },
    },
  );
  assert.deepEqual(parseChallenge('Basic realm="r"'), { scheme: 'basic', parameters: { realm: 'r' } });
  assert.equal(parseChallenge('Negotiate'), undefined);
  assert.equal(parseChallenge(undefined), undefined);
});
