import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { v2Exchange } from '../../src/session/keystone-v2.ts';

const URL = 'http://k/v2.0';
const NOW = Date.parse('2026-01-01T00:00:00Z');

describe('what Keystone v2 is asked', () => {
  it('with a password, by names and by ids', () => {
    const auth = { type: 'password', url: URL, password: 'pw' } as const;
    assert.deepEqual(
      v2Exchange({ ...auth, user: { name: 'u' }, scope: { project: { name: 'images' } } }).body,
      {
        auth: { passwordCredentials: { username: 'u', password: 'pw' }, tenantName: 'images' },
      },
    );
    assert.deepEqual(v2Exchange({ ...auth, user: { id: '1' }, scope: { project: { id: '2' } } }).body, {
      auth: { passwordCredentials: { userId: '1', password: 'pw' }, tenantId: '2' },
    });
  });

  it('with a token, unscoped', () => {
    assert.deepEqual(v2Exchange({ type: 'token', url: URL, token: 't', scope: {} }).body, {
      auth: { token: { id: 't' } },
    });
  });
});

describe('what Keystone v2 answers', () => {
  const { read } = v2Exchange({ type: 'token', url: URL, token: 't', scope: {} });
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

  it('is read, its life counted from now', () => {
    const service = { type: 'image', name: 'cloudImages', regionId: 'DFW' };
    assert.deepEqual(read({ headers: {}, value: { access }, now: NOW }), {
      id: 'id',
      expiresAt: NOW + 3_600_000,
      projectId: '2',
      catalog: [
        { ...service, interface: 'public', url: 'http://public' },
        { ...service, interface: 'internal', url: 'http://internal' },
      ],
    });
  });

  it('without the time of issue, it ends when it says', () => {
    const value = { access: { token: { id: 'id', expires: '2026-01-01T01:00:00Z' } } };
    assert.equal(read({ headers: {}, value, now: NOW }).expiresAt, NOW + 3_600_000);
  });

  it('a fault in it: names the place', () => {
    const value = { access: { ...access, token: { expires: access.token.expires } } };
    assert.throws(() => read({ headers: {}, value, now: NOW }), /access\.token\.id is missing/);
  });
});
