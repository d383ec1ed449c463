import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { ClientRequest } from 'node:http';
import { Readable } from 'node:stream';
import { before, describe, it, type TestContext } from 'node:test';
import type { Account } from '../../../../test/fixtures/openstack/account.ts';
import { openStack } from '../../../../test/fixtures/openstack/openstack.ts';
import type { CloudAuth } from '../../src/cloud-settings.ts';
import { OpenStackSession } from '../../src/session/openstack-session.ts';
import { ServiceClient } from '../../src/session/service-client.ts';
import { settingsWith } from '../fixtures/cloud-settings.ts';
import { failsWith } from '../fixtures/fails-with.ts';
import { SILENT } from '../fixtures/silent-logger.ts';

let account: Account;
let admin: Account;
before(async () => {
  const cloud = await openStack();
  account = await cloud.createAccount();
  ({ admin } = cloud);
});

const DOMAIN = { domainName: 'Default' };

function passwordOf({ authUrl, userName, password, projectName }: Account): CloudAuth {
  return {
    type: 'password',
    url: authUrl,
    user: { name: userName, ...DOMAIN },
    password,
    scope: { project: { name: projectName, ...DOMAIN } },
  };
}

function openSession(auth: CloudAuth): OpenStackSession {
  return new OpenStackSession(settingsWith(auth), { logger: SILENT });
}

/** Reads one field of an image. */
function fieldOf(key: 'id' | 'owner' | 'checksum'): (image: unknown) => string {
  return (image) => String(Object(image)[key]);
}

/** Creates an image in Glance as this user. Returns the id of its project. */
async function ownerOfNewImage(auth: CloudAuth): Promise<string> {
  const client = new ServiceClient({ type: 'image', interface: 'public', version: 'v2' }, openSession(auth));
  const body = { name: 'x', disk_format: 'raw', container_format: 'bare' };
  return (await client.json('POST', '/images', { body, reader: { check: fieldOf('owner') } })).value;
}

describe('tokens of the real Keystone', () => {
  it('the real Keystone issues a token for a password, which the real Glance accepts', async () => {
    const { projectId } = await account.issueToken();
    assert.equal(await ownerOfNewImage(passwordOf(account)), projectId);
  });

  it('the real Keystone issues a token for a password with a discovered version, which the real Glance accepts', async () => {
    const { projectId } = await account.issueToken();
    const url = new URL('/', account.authUrl).href;
    assert.equal(await ownerOfNewImage({ ...passwordOf(account), url } as CloudAuth), projectId);
  });

  it('the real Keystone issues a token for another token, which the real Glance accepts', async () => {
    const { token, projectId } = await account.issueToken();
    const scope = { project: { id: projectId } };
    const auth: CloudAuth = { type: 'token', url: account.authUrl, token, scope };
    assert.equal(await ownerOfNewImage(auth), projectId);
  });

  it('the real Keystone issues a token for an application credential by id and by name, which the real Glance accepts', async () => {
    const { id, name, secret } = await account.createApplicationCredential();
    const { projectId } = await account.issueToken();
    const auth = { type: 'application-credential', url: account.authUrl, secret } as const;
    assert.equal(await ownerOfNewImage({ ...auth, id }), projectId);
    const user = { name: account.userName, ...DOMAIN };
    assert.equal(await ownerOfNewImage({ ...auth, name, user }), projectId);
  });
});

describe('rejected credentials', () => {
  it('the real Keystone rejects a wrong password', async () => {
    const auth = { ...passwordOf(account), password: 'wrong-pw' } as CloudAuth;
    await assert.rejects(ownerOfNewImage(auth), (error: Error) => {
      assert.doesNotMatch(error.message, /wrong-pw/);
      return failsWith('auth-failed', 'POST', '/v3/auth/tokens', 'requires authentication')(error);
    });
  });

  it('the real Keystone rejects a token that was revoked', async () => {
    const { token, projectId } = await account.issueToken();
    await account.revokeToken(token);
    const scope = { project: { id: projectId } };
    const auth: CloudAuth = { type: 'token', url: account.authUrl, token, scope };
    await assert.rejects(ownerOfNewImage(auth), (error: Error) => !error.message.includes(token));
  });

  it('the real Keystone rejects an unknown project', async () => {
    const auth = { ...passwordOf(account), scope: { project: { name: 'none', ...DOMAIN } } } as CloudAuth;
    await assert.rejects(ownerOfNewImage(auth), failsWith('auth-failed'));
  });
});

describe('real tokens', () => {
  it('the real Keystone returns no catalog for an unscoped token', async () => {
    const auth = { ...passwordOf(account), scope: {} } as CloudAuth;
    await assert.rejects(ownerOfNewImage(auth), failsWith('no-such-service', 'name the project'));
  });

  it('the error for a service missing in a real catalog lists the catalog’s services', async () => {
    const client = new ServiceClient(
      { type: 'object-store', interface: 'public' },
      openSession(passwordOf(account)),
    );
    await assert.rejects(client.json('GET', '/'), failsWith('no-such-service', 'identity, image'));
  });

  it('the catalog for a real token with system scope contains Keystone', async () => {
    const auth = { ...passwordOf(admin), scope: { system: 'all' } } as CloudAuth;
    const client = new ServiceClient({ type: 'identity', interface: 'public' }, openSession(auth));
    assert.equal((await client.json('GET', '/users')).status, 200);
  });
});

describe('a real token that was revoked', () => {
  /** Creates a client with a revoked token, and a `queued` image. */
  async function clientWithRevokedToken(t: TestContext): Promise<{ client: ServiceClient; path: string }> {
    const client = new ServiceClient(
      {
        type: 'image',
        interface: 'public',
        version: 'v2',
      },
      openSession(passwordOf(account)),
    );
    let token = '';
    const look = (message: unknown): void => {
      token = String((message as { request: ClientRequest }).request.getHeader('x-auth-token') ?? token);
    };
    subscribe('http.client.request.start', look);
    t.after(() => unsubscribe('http.client.request.start', look));
    const body = { name: 'x', disk_format: 'raw', container_format: 'bare' };
    const { value: id } = await client.json('POST', '/images', { body, reader: { check: fieldOf('id') } });
    await account.revokeToken(token);
    return { client, path: `/images/${id}` };
  }

  it('a real token that was revoked is renewed, and the request is repeated', async (t) => {
    const { client, path } = await clientWithRevokedToken(t);
    assert.equal((await client.json('GET', path)).status, 200);
  });

  it('a real token that was revoked is renewed during a PUT, and the body is sent again', async (t) => {
    const { client, path } = await clientWithRevokedToken(t);
    const content = randomBytes(8_000_000);
    let bodies = 0;
    const body = (): Readable => {
      bodies += 1;
      return Readable.from(chunksOf(content));
    };
    assert.equal((await client.put(`${path}/file`, body, { size: content.length })).status, 204);
    assert.equal(bodies, 2);
    const { value } = await client.json('GET', path, { reader: { check: fieldOf('checksum') } });
    assert.equal(value, createHash('md5').update(content).digest('hex'));
  });
});

function* chunksOf(content: Buffer, length = 65_536): Generator<Buffer> {
  for (let start = 0; start < content.length; start += length) yield content.subarray(start, start + length);
}
