import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { AuthScope } from '../../src/cloud-settings.ts';
import { V2, V3 } from '../../src/session/token-request.ts';

const V3_URL = 'http://k/v3';
const V2_URL = 'http://k/v2.0';
const NOW = Date.parse('2026-01-01T00:00:00Z');

function scopeOf(scope: AuthScope): unknown {
  return (V3.body({ type: 'token', url: V3_URL, token: 't', scope }) as { auth: { scope?: unknown } }).auth
    .scope;
}

describe('the request to Keystone v3', () => {
  it('the request to Keystone v3 contains a password', () => {
    const user = { name: 'builder', domainName: 'Default' };
    const scope = { project: { name: 'images', domainId: 'default' } };
    assert.deepEqual(V3.body({ type: 'password', url: V3_URL, user, password: 'pw', scope }), {
      auth: {
        identity: {
          methods: ['password'],
          password: { user: { name: 'builder', domain: { name: 'Default' }, password: 'pw' } },
        },
        scope: { project: { name: 'images', domain: { id: 'default' } } },
      },
    });
  });

  it('the request to Keystone v3 has no scope with an application credential', () => {
    const auth = { type: 'application-credential', url: V3_URL, secret: 's' } as const;
    const asked = (which: object): unknown => V3.body({ ...auth, ...which });
    const methods = ['application_credential'];
    assert.deepEqual(asked({ id: 'i' }), {
      auth: { identity: { methods, application_credential: { id: 'i', secret: 's' } } },
    });
    assert.deepEqual(asked({ name: 'ci', user: { id: 'u' } }), {
      auth: { identity: { methods, application_credential: { name: 'ci', user: { id: 'u' }, secret: 's' } } },
    });
  });

  it('the request to Keystone v3 contains the scope', () => {
    assert.deepEqual(scopeOf({ project: { id: 'p', name: 'n' } }), { project: { id: 'p' } });
    assert.deepEqual(scopeOf({ domain: { id: 'd' } }), { domain: { id: 'd' } });
    assert.deepEqual(scopeOf({ domain: { name: 'D' } }), { domain: { name: 'D' } });
    assert.deepEqual(scopeOf({ system: 'all' }), { system: { all: true } });
    assert.equal(scopeOf({}), undefined);
  });
});

describe('the response of Keystone v3', () => {
  const { read } = V3;
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

  it('the response from Keystone v3 has the token’s lifetime, which starts now', () => {
    assert.deepEqual(read({ headers: { 'x-subject-token': 'id' }, value: { token }, now: NOW }), {
      value: 'id',
      expiresAt: NOW + 3_600_000,
      projectId: 'p',
      catalog: [{ type: 'image', name: 'glance', interface: 'public', regionId: 'north', url: 'http://g' }],
    });
  });

  it('the response from Keystone v3 has neither project nor catalog if the token is unscoped', () => {
    const { issued_at, expires_at } = token;
    const value = { token: { issued_at, expires_at } };
    const unscoped = read({ headers: { 'x-subject-token': 'id' }, value, now: NOW });
    assert.deepEqual([unscoped.projectId, unscoped.catalog], [undefined, []]);
  });

  it('the response from Keystone v3 yields the readable parts of its catalog', () => {
    const [service] = token.catalog;
    const endpoint = { interface: 'public', url: 'http://g' };
    const catalog = [
      null,
      { type: null, endpoints: [endpoint] },
      { type: 'dns', endpoints: null },
      { type: 'dns', endpoints: [{ interface: 'admin', region: 'R', url: null }] },
      {
        type: 'image',
        name: 7,
        endpoints: [null, { url: 'http://x' }, { ...endpoint, region_id: null, region: 7 }],
      },
      service,
    ];
    const value = { token: { ...token, project: null, catalog } };
    const found = read({ headers: { 'x-subject-token': 'id' }, value, now: NOW });
    const unknown = { name: undefined, regionId: undefined };
    assert.deepEqual(found.catalog, [
      { type: 'dns', name: undefined, interface: 'admin', regionId: 'R', url: undefined },
      { type: 'image', ...unknown, interface: 'public', url: 'http://g' },
      { type: 'image', name: 'glance', interface: 'public', regionId: 'north', url: 'http://g' },
    ]);
    assert.equal(found.projectId, undefined);
  });

  const invalid: [string, Record<string, string>, object, RegExp][] = [
    ['no header', {}, { token }, /x-subject-token is missing/],
    ['no token', { 'x-subject-token': 'id' }, {}, /token is missing/],
    [
      'no time',
      { 'x-subject-token': 'id' },
      { token: { ...token, expires_at: 'soon' } },
      /expires_at is not a time/,
    ],
    [
      'a catalog that is a text',
      { 'x-subject-token': 'id' },
      { token: { ...token, catalog: 'x' } },
      /catalog is not a list/,
    ],
  ];
  for (const [what, headers, value, message] of invalid) {
    it(`the response from Keystone v3 with ${what} causes an error that names the field`, () =>
      assert.throws(() => read({ headers, value, now: NOW }), message));
  }
});

describe('the request to Keystone v2', () => {
  it('the request to Keystone v2 contains a password, with names or ids', () => {
    const auth = { type: 'password', url: V2_URL, password: 'pw' } as const;
    assert.deepEqual(V2.body({ ...auth, user: { name: 'u' }, scope: { project: { name: 'images' } } }), {
      auth: { passwordCredentials: { username: 'u', password: 'pw' }, tenantName: 'images' },
    });
    assert.deepEqual(V2.body({ ...auth, user: { id: '1' }, scope: { project: { id: '2' } } }), {
      auth: { passwordCredentials: { userId: '1', password: 'pw' }, tenantId: '2' },
    });
  });

  it('the request to Keystone v2 contains a token, and no scope', () => {
    assert.deepEqual(V2.body({ type: 'token', url: V2_URL, token: 't', scope: {} }), {
      auth: { token: { id: 't' } },
    });
  });
});

describe('the response of Keystone v2', () => {
  const { read } = V2;
  const endpoint = { region: 'DFW', publicURL: 'http://public', internalURL: 'http://internal' };
  const access = {
    token: {
      id: 'id',
      issued_at: '2025-12-31T12:00:00.123456',
      expires: '2025-12-31T13:00:00.123456Z',
      tenant: { id: '2', name: 'images' },
    },
    serviceCatalog: [{ type: 'image', name: 'cloudImages', endpoints: [endpoint] }],
  };

  it('the response from Keystone v2 has the token’s lifetime, which starts now', () => {
    const service = { type: 'image', name: 'cloudImages', regionId: 'DFW' };
    assert.deepEqual(read({ headers: {}, value: { access }, now: NOW }), {
      value: 'id',
      expiresAt: NOW + 3_600_000,
      projectId: '2',
      catalog: [
        { ...service, interface: 'public', url: 'http://public' },
        { ...service, interface: 'internal', url: 'http://internal' },
      ],
    });
  });

  it('the response from Keystone v2 yields the readable parts of its catalog', () => {
    const odd = { region: null, publicURL: null, internalURL: 7 };
    const serviceCatalog = [null, { type: 'dns' }, { type: 'image', endpoints: [null, odd, endpoint] }];
    const { catalog } = read({ headers: {}, value: { access: { ...access, serviceCatalog } }, now: NOW });
    const urls = catalog.map(({ interface: which, url }) => `${which} ${url}`);
    assert.deepEqual(urls, [
      'public undefined',
      'internal undefined',
      'public http://public',
      'internal http://internal',
    ]);
  });

  it('the response from Keystone v2 without the time of issue has the expiry', () => {
    const value = { access: { token: { id: 'id', expires: '2026-01-01T01:00:00Z' } } };
    assert.equal(read({ headers: {}, value, now: NOW }).expiresAt, NOW + 3_600_000);
  });

  it('the response from Keystone v2 with a missing field causes an error that names the field', () => {
    const value = { access: { ...access, token: { expires: access.token.expires } } };
    assert.throws(() => read({ headers: {}, value, now: NOW }), /access\.token\.id is missing/);
  });
});
