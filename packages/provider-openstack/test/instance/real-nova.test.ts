// Only in test:all: it needs Nova and MariaDB.
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { GlanceImage } from '../../../../test/fixtures/openstack/account.ts';
import { startNova } from '../../../../test/fixtures/openstack/nova/start-nova.ts';
import { OpenStackApi } from '../../../../test/fixtures/openstack/openstack-api.ts';
import { OwnProcesses } from '../../../../test/fixtures/openstack/own-processes.ts';
import { undoAfter } from '../../../../test/fixtures/undo-after.ts';
import { waitUntil } from '../../../../test/fixtures/wait-until.ts';
import { OpenStackInstanceProvider } from '../../src/index.ts';
import { SILENT } from '../fixtures/silent-logger.ts';
import { openRealCloud } from '../real-cloud.ts';
import { createImage, fails, PUBLIC_KEY } from './instance-cloud.ts';

const FLAVORS = [
  { flavorid: '1', name: 'tiny', memory_mb: 128 },
  { flavorid: '2', name: 'above the host', memory_mb: 16_384 },
  { flavorid: '3', name: 'above the quota', memory_mb: 1_048_576 },
];

test('an instance in a real Nova is launched, found, stopped, captured and removed', async (t) => {
  const cloud = await openRealCloud(t);
  const directory = await mkdtemp(join(tmpdir(), 'nova-'));
  undoAfter(t, () => rm(directory, { recursive: true }));
  const processes = new OwnProcesses(directory);
  undoAfter(t, () => processes.close());
  const [url] = await Promise.all([
    startNova(processes, directory, cloud.admin, FLAVORS),
    createImage(cloud.account, 'base', { nodepool_image_name: 'base' }),
  ]);
  const compute = { type: 'compute', interface: 'public', endpointOverride: url };
  const open = (owner = 'builder'): OpenStackInstanceProvider => {
    const provider = new OpenStackInstanceProvider({
      name: 'cloud',
      owner,
      settings: async () => ({ ...cloud.settings, compute }),
      logger: SILENT,
      networks: 'none',
      configDrive: true,
    });
    undoAfter(t, () => provider.close());
    return provider;
  };
  const provider = open();
  const request = {
    buildId: 'debian-1',
    image: 'base',
    publicKey: PUBLIC_KEY,
    port: 22,
    userData: '#!/bin/sh',
  };
  for (const [minRam, reason] of [
    [129, /No valid host/],
    [16_385, /Quota exceeded/],
  ] as const) {
    await assert.rejects(provider.launch({ ...request, minRam }), fails('launch-failed', reason));
  }
  assert.deepEqual(await provider.list(), []);

  const launched = await provider.launch({ ...request, nameFilter: 'tiny' });
  assert.equal(await launched.state(), 'running');
  await assert.rejects(launched.address(), /it has no address/);
  assert.match(await launched.consoleLog(), /FAKE CONSOLE OUTPUT/);
  const nova = new OpenStackApi(`${url}/v2.1`, (await cloud.account.issueToken()).token);
  await nova.request('PUT', `/servers/${launched.id}`, { server: { accessIPv4: '127.0.0.1' } });
  assert.deepEqual(await launched.address(), { host: '127.0.0.1', port: 22 });

  assert.deepEqual(await open('somebody else').list(), []);
  const [instance, ...others] = await open().list();
  assert.ok(instance !== undefined);
  assert.deepEqual(others, []);
  assert.deepEqual([instance.id, instance.buildId], [launched.id, 'debian-1']);
  assert.equal(instance.launchedAt.getTime(), launched.launchedAt.getTime());
  assert.deepEqual(await instance.address(), { host: '127.0.0.1', port: 22 });
  await assert.rejects(instance.capture({ imageId: 'debian-1' }), /it is ACTIVE/);
  await instance.stop();
  assert.equal(await launched.state(), 'stopped');

  const capturing = instance.capture({ imageId: 'debian-1' });
  const image = await waitUntil('Nova to make an image', async () =>
    (await cloud.images()).find(({ status }) => status === 'queued'),
  );
  // This Nova's driver uploads no data.
  const glance = await cloud.account.glance();
  const headers = { 'content-type': 'application/octet-stream' };
  await glance.request('PATCH', `/images/${image.id}`, FORMATS, {
    'content-type': 'application/openstack-images-v2.1-json-patch',
  });
  await glance.request('PUT', `/images/${image.id}/file`, { changed: true }, headers);
  const captured = await capturing;
  assert.equal(captured.externalId, image.id);
  const found = await glance.request<GlanceImage>('GET', `/images/${image.id}`);
  const { nodepool_build_id, nodepool_provider_name, nodepool_image_name, name } = found;
  assert.deepEqual(
    { nodepool_build_id, nodepool_provider_name, nodepool_image_name, name },
    {
      nodepool_build_id: 'debian-1',
      nodepool_provider_name: 'cloud',
      nodepool_image_name: undefined, // the base image's
      name: 'debian-1',
    },
  );
  await captured.save('raw', join(directory, 'captured.raw'));
  assert.equal(await readFile(join(directory, 'captured.raw'), 'utf8'), '{"changed":true}');
  const captures = await open().captures();
  assert.deepEqual(
    captures.map(({ externalId }) => externalId),
    [image.id],
  );
  await instance.destroy();
  assert.equal(await launched.state(), 'failed');
  assert.deepEqual(await provider.list(), []);
  assert.deepEqual(await nova.request('GET', '/os-keypairs'), { keypairs: [] });
  await captures[0]?.discard();
  assert.deepEqual(await provider.captures(), []);
});

/** Properties that a driver with data sets. */
const FORMATS = [
  { op: 'add', path: '/disk_format', value: 'raw' },
  { op: 'add', path: '/container_format', value: 'bare' },
];
