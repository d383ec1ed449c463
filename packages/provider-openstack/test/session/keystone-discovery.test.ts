import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { CloudAuth } from '../../src/cloud-settings.ts';
import { configuredIdentityApi, listedIdentityApi } from '../../src/session/keystone-discovery.ts';
import { passwordAuth } from '../fixtures/cloud-settings.ts';

type KeystoneAuth = Exclude<CloudAuth, { type: 'none' }>;

function withoutDomains(url: string, fixed?: 2 | 3): KeystoneAuth {
  const auth = {
    type: 'password',
    url,
    user: { name: 'u' },
    password: 'p',
    scope: { project: { name: 'p' } },
  };
  return { ...auth, ...(fixed !== undefined && { version: fixed }) } as KeystoneAuth;
}

const withDomains = (url: string): KeystoneAuth => passwordAuth(url) as KeystoneAuth;

function version(id: string, href: string, status = 'stable'): object {
  return { id, status, links: [{ rel: 'self', href }] };
}

describe("Keystone's version in the settings", () => {
  const rows: [string, 2 | 3 | undefined, object | undefined][] = [
    ['http://k:5000/v3', undefined, { version: 3, url: 'http://k:5000/v3' }],
    ['http://k:5000/v3/', undefined, { version: 3, url: 'http://k:5000/v3' }],
    ['http://k:5000/v2.0/', undefined, { version: 2, url: 'http://k:5000/v2.0' }],
    ['http://k/identity/v3', undefined, { version: 3, url: 'http://k/identity/v3' }],
    ['http://k:5000', 3, { version: 3, url: 'http://k:5000/v3' }],
    ['http://k:5000/', 2, { version: 2, url: 'http://k:5000/v2.0' }],
    ['http://k:5000/v2.0', 3, { version: 3, url: 'http://k:5000/v3' }],
    ['http://k:5000', undefined, undefined],
    ['http://v3.example/identity', undefined, undefined],
  ];
  for (const [url, fixed, expected] of rows) {
    it(`Keystone’s version is taken from the URL ${url} with version ${fixed} in the settings`, () => {
      assert.deepEqual(configuredIdentityApi(withoutDomains(url, fixed)), expected);
    });
  }

  it('Keystone’s version is v3 for an application credential', () => {
    const auth: KeystoneAuth = { type: 'application-credential', url: 'http://k/v2.0', id: 'i', secret: 's' };
    assert.deepEqual(configuredIdentityApi(auth), { version: 3, url: 'http://k/v3' });
  });
});

describe("Keystone's version in its list", () => {
  const both = {
    versions: {
      values: [version('v3.14', 'http://k:5000/v3/'), version('v2.0', 'http://k:5000/v2.0/', 'deprecated')],
    },
  };

  it('Keystone’s version in its list is v3 if the settings name domains', () => {
    assert.deepEqual(listedIdentityApi(withDomains('http://k:5000'), both), {
      version: 3,
      url: 'http://k:5000/v3',
    });
  });

  it('Keystone’s version in its list is v2 without domains, or v3 if it is the only one', () => {
    const auth = withoutDomains('http://k:5000');
    assert.deepEqual(listedIdentityApi(auth, both), { version: 2, url: 'http://k:5000/v2.0' });
    const onlyV3 = { versions: { values: [version('v3.14', 'http://k:5000/v3/')] } };
    assert.equal(listedIdentityApi(auth, onlyV3)?.version, 3);
  });

  it('Keystone’s version may be read from the root URL of a single version', () => {
    const response = { version: version('v3.14', '/identity/v3/') };
    assert.deepEqual(listedIdentityApi(withDomains('http://k/identity'), response), {
      version: 3,
      url: 'http://k/identity/v3',
    });
  });

  it('Keystone’s version is never experimental, and not v2 for a user in a domain', () => {
    const values = [version('v3.0', 'http://k/v3', 'experimental'), version('v2.0', 'http://k/v2.0')];
    assert.equal(listedIdentityApi(withDomains('http://k'), { versions: { values } }), undefined);
  });

  describe("the link in Keystone's list", () => {
    const rows: [authUrl: string, href: string, url: string][] = [
      ['https://k', 'http://inside:5000/v3/', 'https://k/v3'],
      ['http://k:5000/identity', 'https://inside/identity/v3/', 'http://k:5000/identity/v3'],
      ['https://k:13000', 'https://k:5000/v3', 'https://k:13000/v3'],
      ['https://k/identity', 'v3/', 'https://k/identity/v3'],
      ['https://k/identity/', './v3', 'https://k/identity/v3'],
      ['https://k/identity', '/v3/', 'https://k/v3'],
      ['https://k/identity', '//inside/identity/v3', 'https://k/identity/v3'],
      ['https://k', 'http://inside//other.example/v3', 'https://k//other.example/v3'],
      ['https://[::1]:5000', 'http://127.0.0.1:1/v3', 'https://[::1]:5000/v3'],
    ];
    for (const [authUrl, href, url] of rows) {
      it(`Keystone’s link ${href} at ${authUrl} is requested at the scheme and host of auth_url`, () => {
        const response = { versions: { values: [version('v3.14', href)] } };
        assert.equal(listedIdentityApi(withDomains(authUrl), response)?.url, url);
      });
    }
  });

  it('Keystone’s version is found among versions and links that cannot be read', () => {
    const links = [
      null,
      { href: 'http://k/docs' },
      { rel: 'describedby', href: 7 },
      { rel: 'self', href: '/v3' },
    ];
    const odd = [null, 'v1', { id: 3, links: [] }, { id: 'v3.0' }, { id: 'v2.0', links: null }];
    const values = [...odd, { id: 'v3.14', status: 'stable', links }];
    for (const response of [{ versions: { values } }, { versions: values }]) {
      assert.equal(listedIdentityApi(withDomains('http://k'), response)?.url, 'http://k/v3');
    }
    const broken = version('v3.14', 'http://[');
    assert.equal(listedIdentityApi(withDomains('http://k'), { versions: [broken] }), undefined);
  });

  it('an invalid list of Keystone’s versions causes an error that names the field', () => {
    const auth = withDomains('http://k');
    assert.throws(() => listedIdentityApi(auth, undefined), /the version list is not an object/);
    assert.throws(() => listedIdentityApi(auth, { versions: { values: 3 } }), /values is not a list/);
  });
});
