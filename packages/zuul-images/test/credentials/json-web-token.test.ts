import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { expiryOf, signToken } from '../../src/credentials/json-web-token.ts';
import { AUTHENTICATOR, mint } from './token-fixture.ts';

/** Checks a token with the library that Zuul uses. */
const CHECK = `
import json, jwt, sys
token, secret, audience, issuer = sys.argv[1:]
print(json.dumps(jwt.decode(token, secret, algorithms=['HS256'], audience=audience, issuer=issuer,
    options={'require': ['exp', 'iat', 'iss', 'aud', 'sub']})))
`;

test('a minted token is accepted by Zuul’s library, and is valid for ten minutes at most', () => {
  const { issuer, clientId, secret } = AUTHENTICATOR;
  const now = Date.now();
  const { value, expiresAt } = mint({ now });
  const printed = execFileSync('/usr/bin/python3', ['-c', CHECK, value, secret, clientId, issuer], {
    encoding: 'utf8',
  });
  const { exp, iat, ...names } = JSON.parse(printed) as { exp: number; iat: number };
  assert.deepEqual(names, { iss: issuer, aud: clientId, sub: 'nodepool' });
  assert.ok(exp - iat <= 600, `${exp - iat} s`);
  assert.equal(expiresAt, exp * 1000);
  assert.ok(exp * 1000 > now && iat * 1000 < now);
});

test('a token’s expiry is read from its claim', () => {
  const claims = { iss: 'i', aud: 'a', sub: 's', iat: 1, exp: 1000 };
  assert.equal(expiryOf(signToken(claims, 'k')), 1_000_000);
  for (const opaque of ['opaque', 'a.b.c', `a.${Buffer.from('{}').toString('base64url')}.c`, 'a.b.c.d']) {
    assert.equal(expiryOf(opaque), undefined, opaque);
  }
});
