import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { AuthScope } from '../../src/cloud-settings.ts';
import { v3Exchange } from '../../src/session/keystone-v3.ts';

const URL = 'http://k/v3';
const NOW = Date.parse('2026-01-01T00:00:00Z');

function scopeOf(scope: AuthScope): unknown {
  const { body } = v3Exchange({ type: 'token', url: URL, token: 't', scope });
  return (body as { auth: { scope?: unknown } }).auth.scope;
}

describe('what Keystone v3 is asked', () => {
  it('with a password', () => {
    const user = { name: 'builder', domainName: 'Default' };
    const scope = { project: { name: 'images', domainId: 'default' } };
    assert.deepEqual(v3Exchange({ type: 'password', url: URL, user, password: 'pw', scope }).body, {
      auth: {
        identity: {
          methods: ['password'],
          password: { user: { name: 'builder', domain: { name: 'Default' }, password: 'pw' } },
        },
        scope: { project: { name: 'images', domain: { id: 'default' } } },
      },
    });
  });

  it('with an application credential: never with a scope', () => {
    const auth = { type: 'application-credential', url: URL, secret: 's' } as const;
    const asked = (which: object): unknown => v3Exchange({ ...auth, ...which }).body;
    const methods = ['application_credential'];
    assert.deepEqual(asked({ id: 'i' }), {
      auth: { identity: { methods, application_credential: { id: 'i', secret: 's' } } },
    });
    assert.deepEqual(asked({ name: 'ci', user: { id: 'u' } }), {
      auth: { identity: { methods, application_credential: { name: 'ci', user: { id: 'u' }, secret: 's' } } },
    });
  });

  it('for each scope', () => {
    assert.deepEqual(scopeOf({ project: { id: 'p', name: 'n' } }), { project: { id: 'p' } });
    assert.deepEqual(scopeOf({ domain: { id: 'd' } }), { domain: { id: 'd' } });
    assert.deepEqual(scopeOf({ domain: { name: 'D' } }), { domain: { name: 'D' } });
    assert.deepEqual(scopeOf({ system: 'all' }), { system: { all: true } });
    assert.equal(scopeOf({}), undefined);
  });
});

describe('what Keystone v3 answers', () => {
  const { read } = v3Exchange({ type: 'token', url: URL, token: 't', scope: {} });
  const token = {
    issued_at: '2025-12-31T12:00:00.000000Z',
    expires_at: '2025-12-31T13:00:00.000000Z',
    project: { id: 'p' },
    catalog: [
      {
        type: 'image',
        name: 'glance',
        endpoints: [{ interface: 'public', region: 'old', region_id: 'north', url: 'http://g' }],
      },
    ],
  };

  it('is read, its life counted from now', () => {
    assert.deepEqual(read({ headers: { 'x-subject-token': 'id' }, value: { token }, now: NOW }), {
      id: 'id',
      expiresAt: NOW + 3_600_000,
      projectId: 'p',
      catalog: [{ type: 'image', name: 'glance', interface: 'public', regionId: 'north', url: 'http://g' }],
    });
  });

  it('an unscoped token has neither project nor catalog', () => {
    const { issued_at, expires_at } = token;
    const value = { token: { issued_at, expires_at } };
    const unscoped = read({ headers: { 'x-subject-token': 'id' }, value, now: NOW });
    assert.deepEqual([unscoped.projectId, unscoped.catalog], [undefined, []]);
  });

  const faults: [string, Record<string, string>, object, RegExp][] = [
    ['no header', {}, { token }, /x-subject-token is missing/],
    ['no token', { 'x-subject-token': 'id' }, {}, /token is missing/],
    [
      'no time',
      { 'x-subject-token': 'id' },
      { token: { ...token, expires_at: 'soon' } },
      /expires_at is not a time/,
    ],
    [
      'a catalog of text',
      { 'x-subject-token': 'id' },
      { token: { ...token, catalog: 'x' } },
      /catalog is not a list/,
    ],
  ];
  for (const [fault, headers, value, message] of faults) {
    it(`${fault}: names the place`, () => assert.throws(() => read({ headers, value, now: NOW }), message));
  }
});
