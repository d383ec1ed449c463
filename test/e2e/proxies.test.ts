// Not a unit test: it loads the SDKs of all clouds.
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { loadConfiguration } from '../../packages/nodepool-builder/src/configuration/load.ts';
import { Modules } from '../../packages/nodepool-builder/src/configuration/modules.ts';
import { deliver } from '../../packages/nodepool-builder/src/daemon/notifications/delivery.ts';
import { makeEvent } from '../../packages/nodepool-builder/src/daemon/notifications/event.ts';
import { Providers } from '../../packages/nodepool-builder/src/site/providers.ts';
import { openZuulApi } from '../../packages/zuul-images/src/api/zuul-api.ts';
import { AddressGuard } from '../../packages/zuul-images/src/download/address-guard.ts';
import { HttpSource } from '../../packages/zuul-images/src/download/http-source.ts';
import { type ForwardProxy, startForwardProxy } from '../fixtures/forward-proxy.ts';
import { RecordingLogger } from '../fixtures/recording-logger.ts';
import { temporaryDirectory } from '../fixtures/temporary-directory.ts';
import { undoAfter } from '../fixtures/undo-after.ts';
import { withVariables } from '../fixtures/with-variables.ts';

const NONE = { http_proxy: undefined, HTTP_PROXY: undefined, https_proxy: undefined, HTTPS_PROXY: undefined };

/** A proxy in the environment that permits no connections. */
async function startProxy(t: TestContext, variable = 'https_proxy'): Promise<ForwardProxy> {
  const proxy = await startForwardProxy({ refuses: 403 });
  undoAfter(t, () => proxy.close());
  const others = { all_proxy: undefined, no_proxy: '127.0.0.0/8', NO_PROXY: undefined, ...NONE };
  withVariables(t, { ...others, [variable]: proxy.url.replace('//', '//ci:hunter2@') });
  return proxy;
}

/** Keys of a provider of each type whose service does not exist, and the first host that it connects to. */
const PROVIDERS: readonly (readonly [type: string, host: string, keys: Readonly<Record<string, unknown>>])[] =
  [
    [
      'openstack',
      'keystone.invalid:5000',
      { 'auth-url': 'https://keystone.invalid:5000/v3', username: 'u', password: 'p' },
    ],
    ['s3', 's3.invalid:443', { endpoint: 'https://s3.invalid', 'bucket-name': 'images' }],
    ['aws', 'ec2.eu-central-1.amazonaws.com:443', { 'region-name': 'eu-central-1' }],
    ['oci', 'registry.invalid:443', { repository: 'registry.invalid/ci/images' }],
    ['gce', 'oauth2.googleapis.com:443', { project: 'ci' }],
    ['azure', 'login.microsoftonline.com:443', { 'resource-group': 'ci', location: 'westeurope' }],
  ];

for (const variable of ['https_proxy', 'ALL_PROXY']) {
  for (const [type, host, keys] of PROVIDERS) {
    test(`the provider ${type} connects to its service through ${variable}`, async (t) => {
      const directory = await temporaryDirectory(t);
      const credentials = join(directory, 'credentials.json');
      const { privateKey } = generateKeyPairSync('rsa', {
        modulusLength: 2048,
        privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
        publicKeyEncoding: { type: 'spki', format: 'pem' },
      });
      await writeFile(
        credentials,
        JSON.stringify({
          type: 'service_account',
          client_email: 'ci@example.com',
          private_key: privateKey,
          clientId: 'c',
          clientSecret: 's',
          tenantId: '00000000-0000-0000-0000-000000000000',
          subscriptionId: 's',
        }),
      );
      const files = { gce: { 'credentials-file': credentials }, azure: { 'auth-path': credentials } };
      const entry = { name: 'cloud', type, images: [], ...keys, ...files[type as keyof typeof files] };
      const file = join(directory, 'nodepool.yaml');
      await writeFile(file, JSON.stringify({ 'images-dir': directory, providers: [entry] }));
      withVariables(t, {
        AWS_ACCESS_KEY_ID: 'a',
        AWS_SECRET_ACCESS_KEY: 'b',
        AWS_EC2_METADATA_DISABLED: 'true',
      });
      const proxy = await startProxy(t, variable);
      const place = { env: {}, cwd: directory, home: directory };
      const { configuration } = await loadConfiguration(file, { place, modules: Modules.builtIn });
      const providers = new Providers({ logger: () => new RecordingLogger() });
      undoAfter(t, () => providers[Symbol.dispose]());
      providers.configure(configuration);
      const listed = providers.get('cloud')?.provider?.list({ signal: AbortSignal.timeout(60_000) });
      await assert.rejects(listed ?? Promise.resolve(), ({ message }: Error) => {
        assert.match(
          message,
          new RegExp(`the proxy 127\\.0\\.0\\.1:${proxy.port} rejects the connection with status 403`),
        );
        assert.doesNotMatch(message, /hunter2/);
        return true;
      });
      assert.ok(proxy.requests.includes(`CONNECT ${host}`), proxy.requests.join(', '));
    });
  }
}

test('Zuul’s API, artifacts and webhooks are requested through a proxy', async (t) => {
  const proxy = await startProxy(t);
  const signal = AbortSignal.timeout(60_000);
  const refused = /the proxy 127\.0\.0\.1:\d+ rejects the connection with status 403/;
  const settings = {
    'api-url': 'https://zuul.invalid/t/ci',
    project: 'p',
    pipelines: ['periodic'],
    job: 'j',
    artifacts: [{ format: 'qcow2', type: 'image' }],
  } as const;
  const api = await openZuulApi(settings as never, new RecordingLogger());
  await assert.rejects(Array.fromAsync(api.builds(settings as never, signal)), refused);
  const guard = new AddressGuard({ configuredUrls: [] });
  const source = new HttpSource('https://logs.invalid/image.qcow2', { guard });
  undoAfter(t, () => source.close());
  await assert.rejects(source.get({}, signal), refused);
  const entry = { name: 'hook', url: 'https://hooks.invalid/a' };
  const event = makeEvent({
    id: 'test',
    event: 'build-failed',
    time: '2026-01-01T00:00:00Z',
    'image-id': 'test',
    error: 'none',
  });
  await assert.rejects(deliver(entry as never, event, signal), refused);
  const hosts = ['zuul.invalid', 'logs.invalid', 'hooks.invalid'];
  assert.deepEqual(
    proxy.requests,
    hosts.map((host) => `CONNECT ${host}:443`),
  );
});

test('an artifact on this host or in its network is rejected, also where a proxy would connect', async (t) => {
  const proxy = await startProxy(t);
  withVariables(t, { no_proxy: undefined });
  const guard = new AddressGuard({ configuredUrls: [] });
  for (const host of ['127.0.0.1', '[::1]', '169.254.169.254', '10.0.0.1', 'localhost']) {
    const source = new HttpSource(`https://${host}/image.qcow2`, { guard });
    undoAfter(t, () => source.close());
    await assert.rejects(source.get({}, AbortSignal.timeout(60_000)), { code: 'artifact-refused' }, host);
  }
  assert.deepEqual(proxy.requests, []);
});
