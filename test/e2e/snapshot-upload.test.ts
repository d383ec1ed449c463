import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { Client } from '@nodepool-builder/gearman-node';
import {
  BaseImageBuilder,
  type BuildContext,
  type BuilderServices,
  type DiskImage,
} from '@nodepool-builder/image-builder';
import { RecordingLogger } from '../../packages/image-builder/test/recording-logger.ts';
import {
  createImage,
  PUBLIC_KEY,
} from '../../packages/image-providers/test/openstack/instance/instance-cloud.ts';
import { loadConfiguration } from '../../packages/nodepool-builder/src/configuration/load.ts';
import { NodepoolBuilder } from '../../packages/nodepool-builder/src/daemon/nodepool-builder.ts';
import { type Gearmand, startGearmand } from '../fixtures/gearmand.ts';
import { cloudsYaml, type GlanceImage } from '../fixtures/openstack/account.ts';
import { type FaultyOpenStack, faultyOpenStack } from '../fixtures/openstack/faulty-openstack.ts';
import { NovaDouble } from '../fixtures/openstack/nova-double/nova-double.ts';
import { openStack } from '../fixtures/openstack/openstack.ts';
import { waitUntil } from '../fixtures/wait-until.ts';

/** What the core of an on-instance build does, but for what it does on the machine. */
class StandInBuilder extends BaseImageBuilder {
  readonly #services: BuilderServices;

  constructor(diskimage: DiskImage, services: BuilderServices) {
    super(diskimage);
    this.#services = services;
  }

  protected override async createImage({
    imageId,
    formats,
    output,
    addSnapshot,
  }: BuildContext): Promise<void> {
    const { provider: name = '', baseImage: image = '' } = this.diskimage.onInstance ?? {};
    const provider = this.#services.instanceProvider(name);
    const request = { buildId: imageId, image, publicKey: PUBLIC_KEY, port: 22 };
    const instance = await provider.launch(request);
    await waitUntil('the machine', async () => (await instance.state()) === 'running');
    await instance.stop();
    const captured = await instance.capture({ imageId });
    for (const format of formats) await captured.save(format, output(format));
    await instance.destroy();
    const { externalId = assert.fail('it is no snapshot') } = captured;
    addSnapshot({ provider: name, externalId }, () => Promise.resolve());
  }
}

const PROVIDERS = `
  - name: cloud
    cloud: mycloud
    image-type: raw
    rate: 0
    template-hostname: 'template-{image.name}'
    images:
      - {name: node, diskimage: debian, meta: {os: debian}}
      - {name: other, diskimage: debian}
  - {name: pool, type: directory, directory: pool, image-type: raw, images: [{name: node, diskimage: debian}]}
  - {name: local, type: qemu}`;

describe('an image that lies in a provider as a snapshot', () => {
  let directory: string;
  let cloud: FaultyOpenStack;
  let nova: NovaDouble;
  let gearmand: Gearmand;
  let client: Client;
  let builder: NodepoolBuilder;
  let base: string;

  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'snapshot-upload-'));
    cloud = await faultyOpenStack(await (await openStack()).createAccount());
    nova = await NovaDouble.start(cloud.account.imageUrl);
    gearmand = await startGearmand();
    base = await createImage(cloud.account, 'base');
    const clouds = join(directory, 'clouds.yaml');
    const overrides = { compute_endpoint_override: nova.url, network_endpoint_override: nova.url };
    await writeFile(clouds, cloudsYaml({ mycloud: { ...cloud.account.cloud(), ...overrides } }));
    await Promise.all(['images', 'pool'].map((name) => mkdir(join(directory, name))));
    const file = join(directory, 'nodepool.yaml');
    await writeFile(
      file,
      `images-dir: images
gearman-servers: [{host: 127.0.0.1, port: ${gearmand.port}}]
diskimages: [{name: debian, builder: on-instance, on-instance: {provider: cloud, base-image: base, steps: ["true"]}}]
providers:${PROVIDERS}
`,
    );
    builder = await start();
    client = new Client({ servers: builder.servers });
  });
  after(async () => {
    await client.close();
    await builder.close();
    await gearmand.stop();
    await nova[Symbol.asyncDispose]();
    await cloud.close();
    await rm(directory, { recursive: true });
  });

  async function start(): Promise<NodepoolBuilder> {
    const place = {
      env: { OS_CLIENT_CONFIG_FILE: join(directory, 'clouds.yaml') },
      cwd: directory,
      home: directory,
    };
    const { configuration } = await loadConfiguration(join(directory, 'nodepool.yaml'), { place });
    const logger = new RecordingLogger();
    const builders = { 'on-instance': StandInBuilder };
    return await NodepoolBuilder.start({ configuration, builders, logger: () => logger });
  }

  async function build(imageId: string): Promise<GlanceImage> {
    await client.submit('image-build:debian', JSON.stringify({ 'image-id': imageId }));
    const [snapshot, ...others] = await imagesOf(imageId);
    assert.deepEqual(others, []);
    return snapshot ?? assert.fail('there is no snapshot');
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

  it('is the result of an upload there, which carries nothing and makes it what an upload would have', async () => {
    const snapshot = await build('1');
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

  it('belongs to one upload: for another the file is carried, as it is to other providers', async () => {
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

  it('that is gone is made up for by the file', async () => {
    const snapshot = await build('3');
    await (await cloud.account.glance()).request('DELETE', `/images/${snapshot.id}`);
    const carried = await upload('3', 'cloud', 'node', randomUUID());
    assert.deepEqual(
      (await imagesOf('3')).map(({ id }) => id),
      [carried],
    );
  });

  it('goes with the image here, unless an upload has claimed it', async () => {
    await build('4');
    const claimed = await build('5');
    await upload('5', 'cloud', 'node', randomUUID());
    await client.submit('image-delete:5');
    await client.submit('image-delete:4');
    await waitUntil('the end of the snapshot', async () => (await imagesOf('4')).length === 0);
    assert.deepEqual(
      (await imagesOf('5')).map(({ id }) => id),
      [claimed.id],
    );
  });

  it('that a dead process left, its image gone, is removed by the next one', async () => {
    const kept = await build('6');
    await build('7');
    await builder.close();
    await rm(join(directory, 'images/7.raw'));
    builder = await start();
    await waitUntil('the end of the snapshot', async () => (await imagesOf('7')).length === 0);
    assert.deepEqual(
      (await imagesOf('6')).map(({ id }) => id),
      [kept.id],
    );
  });

  it('COMPAT 1.5: cannot be made where only machines run', async () => {
    await assert.rejects(
      upload('6', 'local', 'node', randomUUID()),
      /provider "local" is of type qemu: it takes no images; name another to upload to/,
    );
  });
});
