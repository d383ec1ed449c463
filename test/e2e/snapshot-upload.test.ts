// Only in test:all: it starts and kills machines in a cloud, and waits for them.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { Client, type Job } from '@nodepool-builder/gearman-node';
import { loadConfiguration } from '../../packages/nodepool-builder/src/configuration/load.ts';
import { Modules } from '../../packages/nodepool-builder/src/configuration/modules.ts';
import { NodepoolBuilder } from '../../packages/nodepool-builder/src/daemon/nodepool-builder.ts';
import { createImage } from '../../packages/provider-openstack/test/instance/instance-cloud.ts';
import type { Disk } from '../doubles/line-machine.ts';
import { NovaDouble } from '../doubles/openstack/nova-double.ts';
import { sshdMachines } from '../doubles/sshd-machine.ts';
import { type BuilderProcess, programCommand, spawnDaemon } from '../fixtures/builder-process.ts';
import { type Gearmand, startGearmand } from '../fixtures/gearmand.ts';
import { cloudsYaml, type GlanceImage } from '../fixtures/openstack/account.ts';
import { type FaultyOpenStack, faultyOpenStack } from '../fixtures/openstack/faulty-openstack.ts';
import { openStack } from '../fixtures/openstack/openstack.ts';
import { RecordingLogger } from '../fixtures/recording-logger.ts';
import { setUp } from '../fixtures/set-up.ts';
import { sshAtPort } from '../fixtures/ssh-at-port.ts';
import { waitUntil } from '../fixtures/wait-until.ts';

/** Makes the build wait once, at the gate. */
const WAITS = `steps: [mkdir /root/first, "if mkdir /root/second; then echo it waits; sleep 30; fi"]`;

const PROGRAM = join(import.meta.dirname, '../fixtures/ssh-at-port-program.ts');

/** A waiting build. */
interface Begun {
  readonly killed: BuilderProcess;
  /** Client that waits for the job. */
  readonly asking: Client;
  readonly job: Job;
}

const PROVIDERS = (directory: string): string => `
  - name: cloud
    cloud: mycloud
    image-type: raw
    rate: 0
    template-hostname: 'template-{image.name}'
    images:
      - {name: node, diskimage: debian, meta: {os: debian}}
      - {name: other, diskimage: debian}
  - {name: pool, type: directory, directory: ${join(directory, 'pool')}, image-type: raw, images: [{name: node, diskimage: debian}]}
  - {name: local, type: qemu}`;

describe('an image with a snapshot in a provider', () => {
  let directory: string;
  let cloud: FaultyOpenStack;
  let nova: NovaDouble;
  let gearmand: Gearmand;
  let client: Client;
  let builder: NodepoolBuilder;
  let base: string;
  let clouds: string;
  let file: string;

  setUp(async (undo) => {
    directory = await mkdtemp(join(tmpdir(), 'snapshot-upload-'));
    undo(() => rm(directory, { recursive: true }));
    cloud = await faultyOpenStack(await (await openStack()).createAccount());
    undo(() => cloud.close());
    nova = await NovaDouble.start(cloud.account.imageUrl, sshdMachines(directory));
    undo(() => nova[Symbol.asyncDispose]());
    gearmand = await startGearmand();
    undo(() => gearmand.stop());
    base = await createImage(cloud.account, 'base');
    clouds = join(directory, 'clouds.yaml');
    file = join(directory, 'nodepool.yaml');
    const overrides = { compute_endpoint_override: nova.endpoint, network_endpoint_override: nova.endpoint };
    await writeFile(clouds, cloudsYaml({ mycloud: { ...cloud.account.cloud(), ...overrides } }));
    await Promise.all(['images', 'pool'].map((name) => mkdir(join(directory, name))));
    await writeFile(
      file,
      `images-dir: ${join(directory, 'images')}
gearman-servers: [{host: 127.0.0.1, port: ${gearmand.port}}]
diskimages:
  - {name: debian, builder: on-instance, on-instance: {provider: cloud, base-image: base, steps: [echo made > /etc/made]}}
  - {name: destroyed, builder: on-instance, on-instance: {provider: cloud, base-image: base, ${WAITS}}}
  - {name: resumed, builder: on-instance, on-instance: {provider: cloud, base-image: base, after-restart: resume, ${WAITS}}}
providers:${PROVIDERS(directory)}
`,
    );
    builder = await start();
    undo(() => builder.close());
    client = new Client({ servers: builder.servers });
    undo(() => client.close());
  });

  async function start(): Promise<NodepoolBuilder> {
    const env = { OS_CLIENT_CONFIG_FILE: clouds };
    const place = { env, cwd: directory, home: directory };
    const { configuration } = await loadConfiguration(file, { place });
    const logger = new RecordingLogger();
    const modules = Modules.builtIn.withBuilders({ 'on-instance': sshAtPort(nova.port) });
    return await NodepoolBuilder.start({ configuration, modules, logger: () => logger });
  }

  /** Makes a builder process start a build. Resolves once the build waits. */
  async function begin(diskimage: string, imageId: string): Promise<Begun> {
    await builder.close();
    const environment = [`OS_CLIENT_CONFIG_FILE=${clouds}`, `SSH_PORT=${nova.port}`];
    const [command, args] = programCommand(PROGRAM, '-d', '-c', file);
    const killed = spawnDaemon(['env', [...environment, command, ...args]]);
    const asking = new Client({ servers: builder.servers });
    const job = asking.submit(`image-build:${diskimage}`, JSON.stringify({ 'image-id': imageId }));
    void Promise.allSettled([job]); // the test may abandon it
    await killed.logged(/: it waits$/);
    return { killed, asking, job };
  }

  async function build(imageId: string): Promise<GlanceImage> {
    await client.submit('image-build:debian', JSON.stringify({ 'image-id': imageId }));
    return await snapshotOf(imageId);
  }

  async function snapshotOf(imageId: string): Promise<GlanceImage> {
    const [snapshot, ...others] = await imagesOf(imageId);
    assert.deepEqual(others, []);
    return snapshot ?? assert.fail('the cloud has no snapshot');
  }

  /** Returns the files in a snapshot. */
  async function diskOf({ id }: GlanceImage): Promise<Disk> {
    return await (await cloud.account.glance()).request('GET', `/images/${id}/file`);
  }

  /** Lists servers in the cloud and instance records. */
  async function orphans(): Promise<readonly string[]> {
    const ledger = await readdir(join(directory, 'images/.nodepool-builder/instances'));
    return [...nova.servers.keys(), ...nova.keyPairs.keys(), ...ledger];
  }

  async function upload(
    imageId: string,
    provider: string,
    imageName: string,
    unique: string,
  ): Promise<unknown> {
    const argument = JSON.stringify({ provider, 'image-name': imageName });
    const result = await client.submit(`image-upload:${imageId}`, argument, { unique });
    return (JSON.parse(String(result)) as { 'external-id': unknown })['external-id'];
  }

  async function imagesOf(imageId: string): Promise<readonly GlanceImage[]> {
    const images = await cloud.account.images();
    return images.filter((image) => image.id !== base && image.nodepool_build_id === imageId);
  }

  it('a snapshot in a provider becomes the result of an upload there, with an upload’s properties', async () => {
    const snapshot = await build('1');
    const disk = await diskOf(snapshot);
    assert.equal(disk['/etc/made'], 'made\n');
    assert.equal(
      disk['/root/.ssh/authorized_keys'],
      undefined,
      'the key of the build no longer permits a login',
    );
    const log = await readFile(join(directory, 'images/.nodepool-builder/logs/1.log'), 'utf8');
    assert.match(log, /the host key is SHA256:\S+, announced by the console/);
    assert.deepEqual(await orphans(), []);

    const earlier = cloud.glance.requests.length;
    const unique = randomUUID();
    assert.equal(await upload('1', 'cloud', 'node', unique), snapshot.id);
    const changes = cloud.glance.requests.slice(earlier).filter(({ method }) => method !== 'GET');
    assert.deepEqual(
      changes.map(({ method, path }) => `${method} ${path}`),
      [`PATCH /v2/images/${snapshot.id}`],
    );
    const [image] = await imagesOf('1');
    assert.equal(image?.name, 'template-node');
    assert.equal(image?.os, 'debian');
    assert.equal(image?.nodepool_build_time, builder.repository.get('1')?.builtAt.toISOString());
    assert.equal(image?.nodepool_upload_id, unique);
    assert.equal(image?.nodepool_image_name, 'node');
  });

  it('a snapshot in a provider serves one upload, and other uploads and providers get the file', async () => {
    const snapshot = await build('2');
    const unique = randomUUID();
    assert.equal(await upload('2', 'cloud', 'node', unique), snapshot.id);
    assert.equal(await upload('2', 'cloud', 'node', unique), snapshot.id, 'the same upload again');
    const other = await upload('2', 'cloud', 'other', randomUUID());
    assert.notEqual(other, snapshot.id);
    assert.deepEqual(new Set((await imagesOf('2')).map(({ id }) => id)), new Set([snapshot.id, other]));
    assert.equal(await upload('2', 'pool', 'node', randomUUID()), 'node-2.raw');
    assert.ok((await readdir(join(directory, 'pool'))).includes('node-2.raw'));
  });

  it('an upload sends the file if the snapshot in the provider is gone', async () => {
    const snapshot = await build('3');
    await (await cloud.account.glance()).request('DELETE', `/images/${snapshot.id}`);
    const carried = await upload('3', 'cloud', 'node', randomUUID());
    assert.deepEqual(
      (await imagesOf('3')).map(({ id }) => id),
      [carried],
    );
  });

  it('a snapshot in a provider is deleted with the image, unless an upload has claimed it', async () => {
    await build('4');
    const claimed = await build('5');
    await upload('5', 'cloud', 'node', randomUUID());
    await client.submit('image-delete:5');
    await client.submit('image-delete:4');
    await waitUntil('the deletion of the snapshot', async () => (await imagesOf('4')).length === 0);
    assert.deepEqual(
      (await imagesOf('5')).map(({ id }) => id),
      [claimed.id],
    );
  });

  it('a dead process’s snapshot whose image is gone is deleted', async () => {
    const kept = await build('6');
    await build('7');
    await builder.close();
    await rm(join(directory, 'images/7.raw'));
    builder = await start();
    await waitUntil('the deletion of the snapshot', async () => (await imagesOf('7')).length === 0);
    assert.deepEqual(
      (await imagesOf('6')).map(({ id }) => id),
      [kept.id],
    );
  });

  it('a killed builder leaves no server and no snapshot if no job waits for it', async () => {
    const { killed, asking } = await begin('destroyed', '8');
    await asking.close(); // gearmand drops a foreground job without a client
    await killed.end('SIGKILL');
    assert.equal(nova.servers.size, 1);
    builder = await start();
    await waitUntil('no orphans', async () => (await orphans()).length === 0);
    assert.deepEqual(await imagesOf('8'), []);
  });

  it('a killed builder resumes on the same server when its job is assigned again', async () => {
    const { killed, asking, job } = await begin('resumed', '9');
    await killed.end('SIGKILL');
    const [server] = nova.servers.keys();
    builder = await start();
    await job;
    await asking.close();
    const { instance_uuid: captured } = await snapshotOf('9');
    assert.equal(captured, server);
    assert.deepEqual(await orphans(), []);
  });

  it('an image cannot be uploaded to a provider that only runs instances (COMPAT 1.5)', async () => {
    await assert.rejects(
      upload('6', 'local', 'node', randomUUID()),
      /provider "local" of type qemu does not store images; name another to upload to/,
    );
  });
});
