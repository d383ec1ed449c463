// Only in test:all: it uses another instance provider.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { Client } from '@nodepool-builder/gearman-node';
import { loadConfiguration } from '../../packages/nodepool-builder/src/configuration/load.ts';
import { NodepoolBuilder } from '../../packages/nodepool-builder/src/daemon/nodepool-builder.ts';
import { addImage } from '../../packages/provider-aws/test/instance/instance-fixture.ts';
import { AwsDouble } from '../doubles/aws/aws-double.ts';
import { sshdMachines } from '../doubles/sshd-machine.ts';
import { programCommand, spawnDaemon } from '../fixtures/builder-process.ts';
import { type Gearmand, startGearmand } from '../fixtures/gearmand.ts';
import { RecordingLogger } from '../fixtures/recording-logger.ts';
import { setUp } from '../fixtures/set-up.ts';
import { sshAtPort } from '../fixtures/ssh-at-port.ts';
import { waitUntil } from '../fixtures/wait-until.ts';

const PROGRAM = join(import.meta.dirname, '../fixtures/ssh-at-port-program.ts');

const SECRET = 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY';

/** Makes the build wait once, at the gate. */
const WAITS = `steps: ["if mkdir /root/once; then echo it waits; sleep 30; fi"]`;

describe('an image made on an instance of EC2', () => {
  let directory: string;
  let double: AwsDouble;
  let gearmand: Gearmand;
  let client: Client;
  let builder: NodepoolBuilder;
  let file: string;
  const logger = new RecordingLogger();

  setUp(async (undo) => {
    directory = await mkdtemp(join(tmpdir(), 'build-on-ec2-'));
    undo(() => rm(directory, { recursive: true }));
    double = await AwsDouble.start({ boot: sshdMachines(directory) });
    undo(() => double[Symbol.asyncDispose]());
    // Smaller than an AWS volume can be, because its file is read several times.
    addImage(double.region(), 'base', 'x86_64', undefined, 1 / 64);
    gearmand = await startGearmand();
    undo(() => gearmand.stop());
    file = join(directory, 'nodepool.yaml');
    await Promise.all(['images', 'pool'].map((name) => mkdir(join(directory, name))));
    await writeFile(
      join(directory, 'credentials'),
      `[default]\naws_access_key_id = AKIDEXAMPLE\naws_secret_access_key = ${SECRET}\n`,
    );
    await writeFile(
      file,
      `images-dir: ${join(directory, 'images')}
gearman-servers: [{host: 127.0.0.1, port: ${gearmand.port}}]
diskimages:
  - {name: debian, builder: on-instance, on-instance: {provider: ec2, base-image: base, steps: [echo made > /etc/made]}}
  - {name: waiting, builder: on-instance, on-instance: {provider: ec2, base-image: base, ${WAITS}}}
providers:
  - name: ec2
    type: aws
    region-name: us-east-1
    endpoint: ${double.endpoint}
    shared-credentials-file: ${join(directory, 'credentials')}
    instance-type: t3.small
    images: [{name: node, diskimage: debian, meta: {os: debian}}]
  - {name: pool, type: directory, directory: ${join(directory, 'pool')}, image-type: raw, images: [{name: node, diskimage: debian}]}
`,
    );
    builder = await start();
    undo(() => builder.close());
    client = new Client({ servers: builder.servers });
    undo(() => client.close());
  });

  async function start(): Promise<NodepoolBuilder> {
    const place = { env: {}, cwd: directory, home: directory };
    const { configuration, plugins } = await loadConfiguration(file, { place });
    const modules = plugins.modules.withBuilders({ 'on-instance': sshAtPort(double.port) });
    return await NodepoolBuilder.start({ configuration, modules, logger: () => logger });
  }

  async function build(imageId: string): Promise<void> {
    await client.submit('image-build:debian', JSON.stringify({ 'image-id': imageId }));
  }

  async function upload(imageId: string, provider: string, unique: string): Promise<unknown> {
    const argument = JSON.stringify({ provider, 'image-name': 'node' });
    const result = await client.submit(`image-upload:${imageId}`, argument, { unique });
    return (JSON.parse(String(result)) as { 'external-id': unknown })['external-id'];
  }

  /** Lists the AMIs other than the base image. */
  function amis(): string[] {
    const images = double.region().images.all();
    return images.filter(({ name }) => name !== 'base').map(({ id }) => id);
  }

  /** Lists instances, key pairs and records of instances. */
  async function orphans(): Promise<readonly string[]> {
    const { instances, keyPairs } = double.region();
    const live = instances.all().filter(({ state }) => !/terminated|shutting-down/.test(state));
    const records = await readdir(join(directory, 'images/.nodepool-builder/instances'));
    return [...[...live, ...keyPairs.all()].map(({ id }) => id), ...records];
  }

  it('an image built on EC2 is an AMI, which an upload claims, and other providers get the file', async () => {
    await build('1');
    assert.deepEqual(await orphans(), []);
    const [captured, ...others] = amis();
    assert.deepEqual(others, []);
    const log = await readFile(join(directory, 'images/.nodepool-builder/logs/1.log'), 'utf8');
    assert.match(log, /the host key is SHA256:\S+, announced by the console/);
    const unique = randomUUID();
    assert.equal(await upload('1', 'ec2', unique), captured);
    assert.equal(await upload('1', 'ec2', unique), captured, 'the same upload again');
    assert.equal(double.region().receivedBytes, 0);
    const tags = double
      .region()
      .images.get(captured)
      .tags.map(({ Key, Value }) => [Key, Value]);
    const { os, nodepool_upload_id: uploadId, nodepool_image_name: name } = Object.fromEntries(tags);
    assert.deepEqual([os, uploadId, name], ['debian', unique, 'node']);
    assert.equal(await upload('1', 'pool', randomUUID()), 'node-1.raw');
    const disk = (await readFile(join(directory, 'pool/node-1.raw'))).subarray(0, 2 ** 20).toString();
    assert.match(disk, /"\/etc\/made":"made\\n"/);
    assert.doesNotMatch(disk, /authorized_keys/, 'the key of the build no longer permits a login');
    assert.doesNotMatch(JSON.stringify(logger), new RegExp(SECRET));
  });

  it('an image built on EC2 is deleted with its AMI, unless an upload has claimed it', async () => {
    const earlier = amis();
    await build('2');
    assert.equal(amis().length, earlier.length + 1);
    await client.submit('image-delete:2');
    // The snapshots are deleted after the AMI.
    const snapshots = 1 + earlier.length;
    await waitUntil('no AMI', async () => double.region().snapshots.all().length === snapshots);
    assert.deepEqual(amis(), earlier);
  });

  it('a killed builder leaves nothing of an image on EC2', async () => {
    const earlier = amis();
    await builder.close();
    const [command, args] = programCommand(PROGRAM, '-d', '-c', file);
    const killed = spawnDaemon(['env', [`SSH_PORT=${double.port}`, command, ...args]]);
    const asking = new Client({ servers: builder.servers });
    void Promise.allSettled([asking.submit('image-build:waiting', JSON.stringify({ 'image-id': '3' }))]);
    await killed.logged(/: it waits$/);
    await asking.close(); // gearmand drops a foreground job without a client
    await killed.end('SIGKILL');
    assert.notDeepEqual(await orphans(), []);
    builder = await start();
    await waitUntil('no orphans', async () => (await orphans()).length === 0);
    assert.deepEqual(amis(), earlier);
  });
});
