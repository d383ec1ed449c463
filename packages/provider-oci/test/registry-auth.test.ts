import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseChallenge } from '../src/registry-auth.ts';

const TOKEN = {
  realm: 'https://auth.example.com/token',
  service: 'registry',
  scope: 'repository:ci/images:pull,push',
};

test('the parameters of a registry’s challenge may have quotation marks or not', () => {
  const headers = [
    `Bearer realm="${TOKEN.realm}",service="registry",scope="${TOKEN.scope}"`,
    `Bearer realm=${TOKEN.realm},service=registry,scope="${TOKEN.scope}"`,
    `bearer Realm = "${TOKEN.realm}" , SERVICE = registry , scope = "${TOKEN.scope}"`,
    `Bearer scope="${TOKEN.scope}", realm=${TOKEN.realm}, service="registry"`,
    `Negotiate, Bearer realm="${TOKEN.realm}",service="reg\\istry",scope="${TOKEN.scope}", Basic realm="x"`,
    `NTLM TlRMTVNTUAAB==, Bearer realm=${TOKEN.realm} service=registry scope="${TOKEN.scope}"`,
  ];
  for (const header of headers) {
    assert.deepEqual(parseChallenge(header), { scheme: 'bearer', parameters: TOKEN }, header);
  }
});

test('the first known challenge of a registry counts, and a header without one has none', () => {
  const cases: readonly (readonly [header: string, scheme: string | undefined])[] = [
    ['Basic realm=r', 'basic'],
    ['Basic', 'basic'],
    ['Basic realm="a, Bearer b"', 'basic'],
    ['Digest realm="r", nonce="basic", Basic realm="unclosed', 'basic'],
    ['Negotiate', undefined],
    ['realm="x"', undefined],
    ['', undefined],
  ];
  for (const [header, scheme] of cases) assert.equal(parseChallenge(header)?.scheme, scheme, header);
});

test('the parameters of a registry’s challenge may contain its separators, and its scheme may stand alone', () => {
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
