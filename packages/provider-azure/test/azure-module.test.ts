// Not a unit test: it starts Azurite
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { inspect } from 'node:util';
import type { ImageProvider } from '@nodepool-builder/image-builder';
import { readSettings } from '@nodepool-builder/image-builder/internal';
import { freePort } from '../../../scripts/free-port.ts';
import type { ArmDoubleOptions } from '../../../test/doubles/azure/arm-cloud.ts';
import type { ArmDouble } from '../../../test/doubles/azure/arm-double.ts';
import { ArmError } from '../../../test/doubles/azure/arm-model.ts';
import { AZURE_MODULE } from '../src/azure-module.ts';
import { startDouble } from './azure-fixture.ts';
import { diskRequest } from './disk.ts';

const SECRET = 'kept-s3cr3t';

const HOST = { env: {}, cwd: '/', home: '/', warn: () => {} };

/** Port of all doubles in this file, because `@azure/identity` remembers the first address of a managed identity. */
const port = await freePort();

/** Makes its tokens so old that `@azure/identity` requests new ones. */
async function start(t: TestContext, options: Partial<ArmDoubleOptions> = {}): Promise<ArmDouble> {
  return await startDouble(t, { tokenLifetime: 200, ...options }, port);
}

/** Opens the provider of an entry as the daemon does, with a managed identity. */
async function open(
  t: TestContext,
  double: Pick<ArmDouble, 'endpoint' | 'environment' | 'subscription'>,
  keys: Record<string, unknown> = {},
): Promise<ImageProvider> {
  for (const [name, value] of Object.entries(double.environment)) {
    process.env[name] = value;
    t.after(() => delete process.env[name]);
  }
  const entry = {
    ...readSettings(
      AZURE_MODULE.settings,
      {
        'resource-group': 'images',
        location: 'westeurope',
        'subscription-id': double.subscription,
        endpoint: double.endpoint,
        ...keys,
      },
      String,
    ),
    name: 'azure',
    images: [],
  };
  const directory = await mkdtemp(join(tmpdir(), 'azure-records-'));
  t.after(() => rm(directory, { recursive: true }));
  const prepared = AZURE_MODULE.prepare?.(entry, HOST);
  const provider = AZURE_MODULE.images?.open(entry, {
    prepared: async () => (await prepared)?.prepared as { subscription: string },
    formats: ['raw'],
    directory,
    logger: { debug() {}, info() {}, warn() {}, error() {} },
    onTask() {},
  });
  assert.ok(provider);
  return provider;
}

test('a managed identity in Azure provides the token, which is renewed before it expires', async (t) => {
  const double = await start(t, { polls: 0 });
  const provider = await open(t, double, { tags: { team: 'ci' } });
  const { externalId } = await provider.upload(await diskRequest(t, [0]));
  const tokens = double.requests.filter(({ name }) => name === 'GET token').length;
  assert.ok(tokens > 1, `${tokens} tokens`);
  const [candidate] = await provider.findImages({});
  assert.equal(candidate?.externalId, externalId);
  assert.equal(candidate.properties.team, 'ci');
});

test('the Azure diagnosis names missing permissions, and the quota', async (t) => {
  const actions = [
    'Microsoft.Compute/disks/*',
    'Microsoft.Compute/images/read',
    'Microsoft.Compute/images/write',
  ];
  const double = await start(t, { actions, diskQuota: 10 });
  const provider = await open(t, double);
  const results = await Array.fromAsync(provider.diagnose?.() ?? []);
  assert.deepEqual(
    results.map(({ subject, status }) => `${subject}: ${status}`),
    [
      'credentials of provider azure: ok',
      'permissions of provider azure: problem',
      'images of provider azure: ok',
      'quota of provider azure: ok',
    ],
  );
  assert.match(results[1]?.message ?? '', /lack Microsoft\.Compute\/images\/delete$/);
  assert.match(results[3]?.message ?? '', /0 of 10 disks of Standard_LRS in westeurope/);
  assert.ok(double.requests.every(({ name }) => name.startsWith('GET ')));
});

test('the Azure diagnosis warns if the role covers only the resource group, as the quota is then unknown', async (t) => {
  const double = await start(t);
  double.fault = ({ name }) =>
    name === 'GET usages' ? new ArmError('AuthorizationFailed', 'no permission', 403) : undefined;
  const provider = await open(t, double);
  const results = await Array.fromAsync(provider.diagnose?.() ?? []);
  const [found, ...others] = results.filter(({ status }) => status !== 'ok');
  assert.equal(found?.status, 'warning');
  assert.match(found.remedy ?? '', /usages\/read in the subscription/);
  assert.deepEqual(others, []);
});

test('the Azure diagnosis reports a missing gallery or resource group', async (t) => {
  const double = await start(t);
  const gallery = await open(t, double, { 'gallery-name': 'none' });
  const missing = (await Array.fromAsync(gallery.diagnose?.() ?? [])).filter(({ status }) => status !== 'ok');
  assert.deepEqual(
    missing.map(({ subject }) => subject),
    ['gallery none'],
  );
  const group = await open(t, double, { 'resource-group': 'none' });
  const [first] = (await Array.fromAsync(group.diagnose?.() ?? [])).filter(({ status }) => status !== 'ok');
  assert.match(first?.message ?? '', /Resource group 'none' could not be found/);
});

test('no error shows a secret from Azure’s auth-path', async (t) => {
  const double = await start(t);
  const request = await diskRequest(t, [0]);
  const path = join(request.file.path, '../azure.json');
  const principal = { clientId: 'c', clientSecret: SECRET, tenantId: 'not a tenant', subscriptionId: 's' };
  await writeFile(path, JSON.stringify(principal));
  const provider = await open(t, double, { 'auth-path': path });
  await assert.rejects(provider.upload(request), (error) => {
    assert.equal((error as { code?: unknown }).code, 'auth-failed');
    assert.ok(!inspect(error, { depth: Number.POSITIVE_INFINITY, showHidden: true }).includes(SECRET));
    return true;
  });
  await writeFile(path, `{"clientSecret": "${SECRET}",`);
  const entry = {
    ...readSettings(AZURE_MODULE.settings, { 'auth-path': path }, String),
    name: 'azure',
    images: [],
  };
  await assert.rejects(AZURE_MODULE.prepare?.(entry, HOST) ?? Promise.resolve(), (error) => {
    assert.match(String(error), /auth-path ".*" cannot be used: it is not JSON/);
    assert.ok(!inspect(error).includes(SECRET));
    return true;
  });
});

test('the Azure subscription is read from the entry, the file or the environment', async (t) => {
  const path = join((await diskRequest(t, [0])).file.path, '../azure.json');
  await writeFile(
    path,
    JSON.stringify({ appId: 'c', password: 'p', tenant: 't', subscriptionId: 'of-file' }),
  );
  const subscriptionOf = async (keys: object, env = {}): Promise<unknown> => {
    const entry = { ...readSettings(AZURE_MODULE.settings, keys, String), name: 'azure', images: [] };
    return (await AZURE_MODULE.prepare?.(entry, { ...HOST, env }))?.prepared;
  };
  assert.deepEqual(await subscriptionOf({ 'subscription-id': 'own', 'auth-path': path }), {
    subscription: 'own',
  });
  assert.deepEqual(await subscriptionOf({ 'auth-path': path }), { subscription: 'of-file' });
  const env = { AZURE_SUBSCRIPTION_ID: 'of-env' };
  assert.deepEqual(await subscriptionOf({}, env), { subscription: 'of-env' });
  await assert.rejects(subscriptionOf({}), /set subscription-id/);
});

test('an Azure endpoint without TLS is accepted on the loopback interface only', () => {
  assert.deepEqual(diagnostics({ endpoint: 'http://127.0.0.1:1' }), []);
  assert.deepEqual(diagnostics({ endpoint: 'https://management.local.azurestack.external' }), []);
  assert.deepEqual(diagnostics({ endpoint: 'http://example.com' }), [
    '/endpoint would send tokens without TLS',
  ]);
  assert.deepEqual(diagnostics({ endpoint: 'azure' }), ['/endpoint is not a URL']);
  assert.deepEqual(diagnostics({ 'target-regions': ['a'] }), [
    '/target-regions has no effect without gallery-name',
  ]);
});

function diagnostics(keys: object): readonly string[] {
  const entry = { ...readSettings(AZURE_MODULE.settings, keys, String), name: 'azure', images: [] };
  return [...(AZURE_MODULE.check?.(entry) ?? [])].map(({ pointer, reason }) => `${pointer} ${reason}`);
}
