// Only in test:all: it repeats the command reap for each status of Nova and Neutron.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { openNovaCloud, PUBLIC_KEY } from '../../packages/provider-openstack/test/instance/instance-cloud.ts';
import { builderCommand } from '../fixtures/builder-process.ts';
import { respondsWith } from '../fixtures/fault-proxy/faults.ts';
import { cloudsYaml } from '../fixtures/openstack/account.ts';
import { undoAfter } from '../fixtures/undo-after.ts';

/** Creates an upload, a server and a snapshot of killed jobs, and reaps while Nova and Neutron respond like this. */
async function reap(
  t: TestContext,
  statuses: Readonly<Record<string, number>>,
  cloud: Readonly<Record<string, unknown>> = {},
): Promise<{ code: number; stderr: string; images: number; servers: number }> {
  const { account, nova, faults, open } = await openNovaCloud(t);
  const provider = open({ name: 'ci', owner: 'ci-job', scope: '0123' });
  const request = { image: 'base', publicKey: PUBLIC_KEY, port: 22 };
  const captured = await provider.launch({ ...request, buildId: 'captured' });
  await captured.stop();
  await captured.capture({ imageId: 'captured' });
  await captured.destroy();
  await provider.launch({ ...request, buildId: 'killed' });
  const glance = await account.glance();
  const upload = {
    nodepool_provider_name: 'ci',
    nodepool_build_id: '1',
    nodepool_image_name: 'debian',
    nodepool_upload_id: `job-${'0'.repeat(64)}`,
  };
  await glance.request('POST', '/images', {
    ...upload,
    name: 'incomplete',
    disk_format: 'raw',
    container_format: 'bare',
  });
  assert.equal((await account.images()).length, 3);

  for (const [path, status] of Object.entries(statuses)) {
    faults.inject({ path: new RegExp(path), times: 99 }, respondsWith(status));
  }
  const directory = await mkdtemp(join(tmpdir(), 'reap-without-rights-'));
  undoAfter(t, () => rm(directory, { recursive: true }));
  const clouds = join(directory, 'clouds.yaml');
  const overrides = { compute_endpoint_override: faults.url, network_endpoint_override: faults.url };
  await writeFile(clouds, cloudsYaml({ ci: { ...account.cloud(), ...overrides, ...cloud } }));
  const [file, args] = builderCommand('reap', '--provider', 'ci', '--older-than', '0s');
  const env = { ...process.env, OS_CLIENT_CONFIG_FILE: clouds };
  const outcome = await new Promise<{ code: number; stderr: string }>((resolve) => {
    execFile(file, args, { env, cwd: directory }, (error, _, stderr) =>
      resolve({ code: Number(error?.code ?? 0), stderr }),
    );
  });
  // The base image remains.
  return { ...outcome, images: (await account.images()).length - 1, servers: nova.servers.size };
}

for (const status of [401, 403, 404, 405]) {
  test(`the command reap removes everything where Neutron responds with ${status} for floating IPs`, async (t) => {
    const { code, stderr, images, servers } = await reap(t, { floatingips: status });
    assert.equal(code, 0, stderr);
    assert.deepEqual([stderr, images, servers], ['', 0, 0]);
  });
}

for (const status of [401, 403, 404]) {
  test(`the command reap removes uploads and snapshots where Nova responds with ${status}, and warns once`, async (t) => {
    const { code, stderr, images, servers } = await reap(t, { 'servers|keypairs': status });
    assert.equal(code, 0, stderr);
    assert.match(
      stderr,
      new RegExp(`^nodepool-builder: cannot look for orphans of builds: .* ${status} .*\\n$`),
    );
    assert.deepEqual([images, servers], [0, 1]);
  });
}

test('the command reap removes uploads and snapshots in a cloud without compute and network services', async (t) => {
  const none = { compute_endpoint_override: null, network_endpoint_override: null };
  const { code, stderr, images } = await reap(t, {}, none);
  assert.equal(code, 0, stderr);
  assert.deepEqual([stderr, images], ['', 0]);
});

test('the command reap removes uploads and snapshots while Nova is down, and then fails', async (t) => {
  const { code, stderr, images } = await reap(t, { 'servers|keypairs': 503 });
  assert.equal(code, 5, stderr);
  assert.match(stderr, /503 Service Unavailable/);
  assert.equal(images, 0);
});
