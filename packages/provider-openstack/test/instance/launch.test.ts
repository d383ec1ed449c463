import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LaunchRequest } from '@nodepool-builder/image-builder';
import { CloudError } from '@nodepool-builder/image-builder/plugin';
import {
  changesResponse,
  losesResponse,
  respondsWith,
} from '../../../../test/fixtures/fault-proxy/faults.ts';
import { createImage, fails, type NovaCloud, openNovaCloud, PUBLIC_KEY } from './instance-cloud.ts';

const REQUEST: LaunchRequest = { buildId: 'debian-1', image: 'base', publicKey: PUBLIC_KEY, port: 22 };

/** Resources of a launch. */
function orphans({ nova }: NovaCloud): object {
  const { servers, keyPairs, neutron } = nova;
  return { servers: servers.size, keyPairs: keyPairs.size, floatingIps: neutron.floatingIps.length };
}

async function noSettings(): Promise<never> {
  throw new CloudError('invalid-settings', 'no cloud; correct cloud');
}

const NOTHING = { servers: 0, keyPairs: 0, floatingIps: 0 };

test('a base image in Glance is described by its id and digests', async (t) => {
  const { account, open } = await openNovaCloud(t);
  const id = await createImage(account, 'other');
  const provider = open();
  const described = await provider.describeImage('other');
  assert.equal(described?.annotations?.id, id);
  assert.match(described?.digest.md5 ?? '', /^[0-9a-f]{32}$/);
  assert.equal(await provider.describeImage('missing'), undefined);
});

test('a server boots from the newest image with the name, with the settings and the request', async (t) => {
  const cloud = await openNovaCloud(t);
  const { nova, open, account, glance } = cloud;
  const newest = await createImage(account, 'base');
  // Glance's times are in seconds.
  const inOrder = changesResponse(({ images }) => ({
    images: (images as { id: string }[]).map((image) => ({
      ...image,
      created_at: image.id === newest ? '2026-01-02T00:00:00Z' : '2026-01-01T00:00:00Z',
    })),
  }));
  glance.inject({ path: /[?&]name=base/ }, inOrder);
  nova.flavors = [
    { id: '1', name: 'large', ram: 4096 },
    { id: '2', name: 'tiny', ram: 128 },
    { id: '3', name: 'small', ram: 2048 },
  ];
  const provider = open({ networks: ['private'], configDrive: true });
  const instance = await provider.launch({
    ...REQUEST,
    minRam: 129,
    nameFilter: 'a',
    userData: '#cloud-config',
  });
  const { request } = nova.servers.get(instance.id) ?? {};
  const { name, key_name, metadata, ...others } = request ?? {};
  const [network] = nova.neutron.networks.filter((one) => one.name === 'private');
  assert.deepEqual(others, {
    imageRef: newest,
    flavorRef: '3',
    config_drive: true,
    networks: [{ uuid: network?.id }],
    user_data: Buffer.from('#cloud-config').toString('base64'),
  });
  assert.match(String(name), /^nodepool-builder-[0-9a-f]{12}-debian-1$/);
  assert.deepEqual(metadata, {
    nodepool_provider_name: 'cloud',
    nodepool_build_id: 'debian-1',
    nodepool_builder_port: '22',
    nodepool_builder_launched_at: instance.launchedAt.toISOString(),
  });
  const key = nova.keyPairs.get(String(key_name)) ?? '';
  assert.deepEqual(key.split(' ').slice(0, 2), PUBLIC_KEY.split(' ').slice(0, 2));
});

test('a floating IP is created for an instance without a public address, and deleted with it', async (t) => {
  const cloud = await openNovaCloud(t);
  const { nova, open, faults } = cloud;
  const provider = open({ pool: 'public' });
  const instance = await provider.launch(REQUEST);
  assert.deepEqual(await instance.address(), { host: '198.51.100.7', port: 22 });
  assert.deepEqual(
    (await provider.list()).map(({ id }) => id),
    [instance.id],
  );
  await instance.destroy();
  assert.deepEqual(orphans(cloud), NOTHING);

  const looking = { method: 'GET', path: /\/floatingips/ };
  faults.inject(looking, async (exchange) => {
    await provider.launch(REQUEST); // during a list
    await exchange.pass();
  });
  const [found, ...others] = await open().list();
  assert.deepEqual([found?.buildId, others], ['debian-1', []]);
  await found?.destroy();

  nova.neutron.free = [];
  await assert.rejects(provider.launch(REQUEST), fails('launch-failed', /No more IP addresses/));
  assert.deepEqual(orphans(cloud), NOTHING);
  await assert.rejects(
    open({ pool: 'absent' }).launch(REQUEST),
    fails('launch-failed', /no network has .*"absent"/),
  );
});

test('a failed launch in Nova reports a reason and leaves no resources', async (t) => {
  const cloud = await openNovaCloud(t);
  const { nova, open, faults } = cloud;
  const provider = open();
  const quota = {
    forbidden: { code: 403, message: 'Quota exceeded for instances: Requested 1, but already used 10' },
  };
  faults.inject({ method: 'POST', path: /\/servers$/ }, respondsWith(403, { body: quota }));
  await assert.rejects(provider.launch(REQUEST), (error: Error) => {
    assert.ok(fails('launch-failed', /Quota exceeded for instances/)(error));
    return error.cause instanceof CloudError && error.cause.code === 'quota-exceeded';
  });
  assert.deepEqual(orphans(cloud), NOTHING);

  nova.fault = 'No valid host was found. There are not enough hosts available.';
  await assert.rejects(
    provider.launch(REQUEST),
    fails('launch-failed', /went to ERROR: No valid host was found/),
  );
  assert.deepEqual(orphans(cloud), NOTHING);
  nova.fault = undefined;

  await assert.rejects(
    provider.launch({ ...REQUEST, minRam: 256 }),
    fails('launch-failed', /no flavor has at least 256 MiB .* the cloud has the flavors tiny \(128 MiB\)/),
  );

  await assert.rejects(
    open({ settings: noSettings }).launch(REQUEST),
    fails('launch-failed', /no cloud; correct cloud/),
  );

  // A server exists, but only its name is known.
  const lost = faults.inject({ method: 'POST', path: /\/servers$/ }, losesResponse());
  await assert.rejects(provider.launch(REQUEST), fails('launch-failed', /no response/));
  assert.equal(lost.hits, 1);
  assert.deepEqual(orphans(cloud), NOTHING);
});

test('resources in Nova that a failed cleanup left are listed with their build', async (t) => {
  const cloud = await openNovaCloud(t);
  const { open, faults } = cloud;
  const provider = open({ pool: 'public' });
  // As if the process died with the response to this request.
  faults.inject({ method: 'POST', path: /\/servers$/ }, respondsWith(400));
  faults.inject({ method: 'DELETE', times: 3 }, respondsWith(500));
  await assert.rejects(provider.launch(REQUEST), fails('launch-failed', /400/));
  assert.deepEqual(orphans(cloud), { ...NOTHING, keyPairs: 1 });
  const [left, ...others] = await open().list();
  assert.ok(left !== undefined);
  assert.deepEqual(others, []);
  assert.equal(left.buildId, 'debian-1');
  assert.ok(Math.abs(left.launchedAt.getTime() - Date.now()) < 60_000);
  assert.equal(await left.state(), 'failed');
  await assert.rejects(left.consoleLog(), fails('instance-failed', /does not exist/));
  assert.deepEqual(await open({ owner: 'somebody else' }).list(), []);
  await left.destroy();
  assert.deepEqual(orphans(cloud), NOTHING);

  const instance = await provider.launch(REQUEST);
  const [name = ''] = cloud.nova.keyPairs.keys();
  cloud.nova.keyPairs.set(name, PUBLIC_KEY);
  assert.equal((await provider.list())[0]?.buildId, 'debian-1');
  await cloud.nova.removeServers();
  cloud.nova.keyPairs.clear();
  const { floatingIps } = cloud.nova.neutron;
  const theirs = { id: '1', floating_ip_address: '198.51.100.9', port_id: '', description: 'of somebody' };
  floatingIps.unshift(theirs);
  const [floating] = await provider.list();
  assert.notEqual(floating?.id, instance.id);
  await floating?.destroy();
  assert.deepEqual(floatingIps, [theirs]);
});
