// Not a unit test: it starts servers.
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { inspect } from 'node:util';
import { CloudError } from '@nodepool-builder/image-builder/plugin';
import { GceCredentials } from '../src/gce-credentials.ts';
import { type GceFixture, gceFixture, requestFor, SECRET } from './gce-fixture.ts';

/** Checks that an error names the rejected credentials, with a reason and a remedy, and does not quote secrets. */
function refused(reason: RegExp, remedy: RegExp): (error: unknown) => true {
  return (error) => {
    assert.ok(error instanceof CloudError);
    assert.deepEqual([error.code, error.retriable], ['auth-failed', false]);
    assert.match(error.message, /^provider ci: \w+: the credentials ".*credentials\.json" were rejected: /);
    assert.match(error.message, reason);
    assert.match(error.message, remedy);
    const all = inspect(error, { depth: 20 });
    for (const secret of [SECRET, 'PRIVATE KEY', 'eyJ']) assert.ok(!all.includes(secret), all);
    return true;
  };
}

/** Creates a fixture whose credentials are a service account key. */
async function keyFixture(t: TestContext): Promise<{
  readonly fixture: GceFixture;
  readonly file: string;
  readonly key: ReturnType<GceFixture['double']['createKey']>;
}> {
  const fixture = await gceFixture(t);
  fixture.double.tokens.lifetime = 0;
  const key = fixture.double.createKey();
  const file = join(fixture.directory, 'credentials.json');
  await writeFile(file, JSON.stringify(key));
  return { fixture, file, key };
}

for (const [what, description, remedy] of [
  ['a wrong clock', 'ID Token issued at 1 is stale to sign-in.', /; set the clock of this host/],
  ['a deleted account', 'Invalid grant: account not found', /; the key or its account was deleted/],
  ['a withdrawn login', 'Token has been expired or revoked.', /; log in again: gcloud auth/],
  ['anything else', `The token eyJ0.${SECRET}.abc is odd.`, /; check whether the key or its account/],
] as const) {
  test(`a Google token endpoint that rejects ${what} causes an error with a remedy`, async (t) => {
    const fixture = await gceFixture(t);
    fixture.double.tokens.tokenError = () => ({ error: 'invalid_grant', error_description: description });
    await assert.rejects(fixture.open().list(), refused(/invalid_grant: /, remedy));
  });
}

test('a Google token endpoint with a problem of its own is queried again', async (t) => {
  const fixture = await gceFixture(t);
  const errors = ['internal_failure', 'temporarily_unavailable'];
  fixture.double.tokens.tokenError = () => {
    const error = errors.shift();
    return error === undefined ? undefined : { error, error_description: 'Try again.' };
  };
  assert.deepEqual(await fixture.open().list(), []);
  assert.deepEqual(errors, []);
});

test('the error for a deleted key or a wrong clock names the credentials file', async (t) => {
  const { fixture, key } = await keyFixture(t);
  const provider = fixture.open();
  assert.deepEqual(await provider.list(), []);
  fixture.double.tokens.now = () => Date.now() + 7_200_000;
  await assert.rejects(
    provider.list(),
    refused(/invalid_grant: Invalid JWT: /, /; set the clock of this host/),
  );
  fixture.double.tokens.now = Date.now;
  fixture.double.tokens.deleteKey(key);
  await assert.rejects(
    provider.list(),
    refused(/invalid_grant: Invalid JWT S/, /; the key or its account was deleted/),
  );
});

test('a key that is replaced in its file during an upload to Compute Engine is used from then on', async (t) => {
  const { fixture, file, key } = await keyFixture(t);
  const { double } = fixture;
  const next = double.createKey();
  double.fault = ({ operation }) => {
    if (!operation.startsWith('PUT ')) return undefined;
    writeFileSync(file, JSON.stringify(next));
    double.tokens.deleteKey(key);
    return undefined;
  };
  const provider = fixture.open();
  const { externalId } = await provider.upload(await requestFor(fixture));
  assert.deepEqual(
    (await provider.list()).map((image) => image.externalId),
    [externalId],
  );
});

test('the earlier Google credentials stay in use while the file is being written', async (t) => {
  const { fixture, file, key } = await keyFixture(t);
  const provider = fixture.open();
  assert.deepEqual(await provider.list(), []);
  await writeFile(file, '{"type": "service_acc');
  assert.deepEqual(await provider.list(), []);
  const next = fixture.double.createKey();
  await writeFile(`${file}.new`, JSON.stringify(next));
  await rename(`${file}.new`, file);
  fixture.double.tokens.deleteKey(key);
  assert.deepEqual(await provider.list(), []);
});

test('Google credentials that impersonate a service account are accepted without a warning', async (t) => {
  const fixture = await gceFixture(t);
  const { double, directory } = fixture;
  const warn = t.mock.method(console, 'warn', () => {});
  const account = 'builder@ci-project.iam.gserviceaccount.com';
  const file = {
    type: 'impersonated_service_account',
    service_account_impersonation_url: `https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/${account}:generateAccessToken`,
    source_credentials: double.credentials(join(directory, 'subject')),
    endpoint: double.endpoint,
  };
  await writeFile(join(directory, 'credentials.json'), JSON.stringify(file));
  assert.deepEqual(await fixture.open().list(), []);
  assert.equal(warn.mock.callCount(), 0);
});

test('Google credentials that the library cannot use cause an error that names the file', async (t) => {
  const fixture = await gceFixture(t);
  const file = { type: 'impersonated_service_account', refresh_token: SECRET };
  await writeFile(join(fixture.directory, 'credentials.json'), JSON.stringify(file));
  await assert.rejects(fixture.open().list(), (error) => {
    assert.ok(error instanceof CloudError);
    assert.equal(error.code, 'bad-request');
    assert.match(error.message, /^credentials: ".*credentials\.json" cannot be used: .*source_credentials/);
    assert.ok(!inspect(error, { depth: 20 }).includes(SECRET));
    return true;
  });
});

test('Google credentials of another kind cause an error that names their type', async (t) => {
  const fixture = await gceFixture(t);
  await writeFile(join(fixture.directory, 'credentials.json'), JSON.stringify({ type: 'gdch' }));
  await assert.rejects(fixture.open().list(), /credentials of type "gdch"/);
});

test('a token server that responds with 404 does not make an image appear missing', async (t) => {
  const server = createServer((_request, response) => response.writeHead(404).end('<html>not here</html>'));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const directory = await mkdtemp(join(tmpdir(), 'gce-'));
  t.after(() => rm(directory, { recursive: true }));
  const { privateKey } = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  });
  const path = join(directory, 'credentials.json');
  const key = {
    type: 'service_account',
    client_email: 'ci@example.com',
    private_key: privateKey,
    token_uri: `http://127.0.0.1:${(server.address() as AddressInfo).port}/token`,
  };
  await writeFile(path, JSON.stringify(key));
  const credentials = new GceCredentials(path, {}, 'provider gce');
  const url = 'http://127.0.0.1:1/';
  for (const send of [() => credentials.request({ url }), () => credentials.fetch(url)]) {
    await assert.rejects(send(), {
      code: 'auth-failed',
      message: /^provider gce: the token server responds with status 404/,
    });
  }
});
