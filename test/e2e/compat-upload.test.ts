import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmod, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, it } from 'node:test';
import type { BuilderProcess } from '../fixtures/builder-process.ts';
import { type CompatSite, createCompatSite } from '../fixtures/compat-site.ts';
import { cutsAfter, respondsWith, stallsAfter } from '../fixtures/fault-proxy/faults.ts';
import { type Geard, startGeard } from '../fixtures/geard.ts';
import { NodepoolClient } from '../fixtures/nodepool-client.ts';
import { cloudsYaml, type GlanceImage } from '../fixtures/openstack/account.ts';
import { type FaultyOpenStack, faultyOpenStack } from '../fixtures/openstack/faulty-openstack.ts';
import { openStack } from '../fixtures/openstack/openstack.ts';
import { setUp } from '../fixtures/set-up.ts';
import { type StatsdListener, startStatsdListener } from '../fixtures/statsd-listener.ts';
import { waitUntil } from '../fixtures/wait-until.ts';

/** Providers of the same cloud; `impatient` has a short timeout. */
const PROVIDERS = `
  - name: cloud-a
    cloud: mycloud
    image-type: raw
    rate: 0.001
    max-servers: 10
    images:
      - {name: trusty, diskimage: debian, min-ram: 8192, meta: {os: linux, managed: false, cores: 4}}
  - name: cloud-b
    cloud: mycloud
    image-type: raw
    rate: 0.001
    max-servers: 10
    template-hostname: '{provider.name}/{image.name}/{image.id}/{provider.max_servers}/{timestamp}'
    images: [{name: trusty-b, diskimage: debian, min-ram: 8192}]
  - name: impatient
    cloud: mycloud
    image-type: raw
    rate: 0.001
    image-upload-timeout: 2
    max-servers: 10
    images: [{name: trusty, diskimage: debian, min-ram: 8192}]
  - name: without-retries
    cloud: mycloud
    image-type: raw
    rate: 0.001
    upload-retry-timeout: 0
    max-servers: 10
    images: [{name: trusty, diskimage: debian, min-ram: 8192}]`;

describe("uploads to OpenStack, over a job server like python's geard", () => {
  let cloud: FaultyOpenStack;
  let server: Geard;
  let statsd: StatsdListener;
  let site: CompatSite;
  let builder: BuilderProcess;
  let client: NodepoolClient;
  let conversions: string;

  setUp(async (undo) => {
    cloud = await faultyOpenStack(await (await openStack()).createAccount());
    undo(() => cloud.close());
    server = await startGeard();
    undo(() => server.stop());
    statsd = await startStatsdListener();
    undo(() => statsd.close());
    site = await createCompatSite(server.port, { providers: PROVIDERS });
    undo(() => site.remove());
    conversions = await countConversions(site.dib.directory);
    const clouds = join(site.directory, 'clouds.yaml');
    await writeFile(clouds, cloudsYaml({ mycloud: cloud.account.cloud() }));
    builder = await site.start({
      OS_CLIENT_CONFIG_FILE: clouds,
      STATSD_HOST: '127.0.0.1',
      STATSD_PORT: String(statsd.port),
    });
    undo(async () => {
      assert.equal(await builder.end('SIGINT'), 0);
      assert.ok(!builder.log.some((line) => line.includes(cloud.account.password)), 'no password is logged');
    });
    client = await NodepoolClient.connect(server.port);
    undo(() => client.close());
  });
  afterEach(() => cloud.glance.clear());

  /** Returns the image in the cloud that the builder's result names. */
  async function uploaded(data: string): Promise<GlanceImage> {
    const { 'external-id': id } = JSON.parse(data) as { 'external-id': string };
    const found = (await cloud.account.images()).find((image) => image.id === id);
    assert.ok(found !== undefined, `${id} is in Glance`);
    return found;
  }

  async function imagesOf(imageId: string): Promise<GlanceImage[]> {
    return (await cloud.account.images()).filter((image) => image.nodepool_build_id === imageId);
  }

  it('an upload’s external-id is Glance’s id, and the image has its name, formats and properties (COMPAT 1.4, 1.11)', async () => {
    await client.build('debian', '1');
    const { end, data } = await client.upload('1', 'cloud-a', 'trusty');
    assert.equal(end, 'WORK_COMPLETE');
    assert.match(data, /^\{"external-id": "[-0-9a-f]{36}"\}$/);
    const image = await uploaded(data);
    assert.match(image.name, /^template-trusty-\d{10}$/);
    const content = await readFile(join(site.images, '1.raw'));
    const digest = (algorithm: string): string => createHash(algorithm).update(content).digest('hex');
    const manifest = await readFile(join(site.images, '.nodepool-builder/manifests/1.json'), 'utf8');
    const { finished } = JSON.parse(manifest) as { finished: string };
    const expected = {
      status: 'active',
      disk_format: 'raw',
      container_format: 'bare',
      visibility: 'private',
      checksum: digest('md5'),
      'owner_specified.shade.md5': digest('md5'),
      'owner_specified.shade.sha256': digest('sha256'),
      'owner_specified.shade.object': `images/${image.name}`,
      nodepool_build_time: finished,
      os: 'linux',
      managed: 'False',
      cores: '4',
    };
    assert.deepEqual(Object.fromEntries(Object.keys(expected).map((key) => [key, image[key]])), expected);
  });

  it('template-hostname supports all of its fields (COMPAT 1.10)', async () => {
    await client.build('debian', '2');
    const image = await uploaded((await client.upload('2', 'cloud-b', 'trusty-b')).data);
    assert.match(image.name, /^cloud-b\/trusty-b\/2\/10\/\d{10}$/);
  });

  it('concurrent uploads to several providers share one conversion, and each makes an image', async () => {
    execFileSync('qemu-img', ['create', '-q', '-f', 'qcow2', join(site.images, '3.qcow2'), '1M']);
    const uploads = [
      client.upload('3', 'cloud-a', 'trusty'),
      client.upload('3', 'cloud-b', 'trusty-b'),
      client.upload('3', 'cloud-a', 'trusty'),
    ];
    const images = await Promise.all((await Promise.all(uploads)).map(({ data }) => uploaded(data)));
    assert.equal(new Set(images.map(({ id }) => id)).size, 3);
    const converted = (await readFile(conversions, 'utf8'))
      .split('\n')
      .filter((line) => line.startsWith('convert'));
    assert.equal(converted.length, 1, String(converted));
  });

  it('an upload that the cloud rejects ends with WORK_EXCEPTION and the cloud’s message, and leaves nothing (COMPAT 1.5)', async () => {
    await client.build('debian', '4');
    const body = { message: 'Quota of images is used up' };
    cloud.glance.inject({ method: 'POST', path: /\/v2\/images$/ }, respondsWith(403, { body }));
    const { end, data } = await client.upload('4', 'cloud-a', 'trusty');
    assert.equal(end, 'WORK_EXCEPTION');
    assert.match(data, /mycloud.*Quota of images is used up/);
    assert.doesNotMatch(data, /\n/);
    assert.deepEqual(await imagesOf('4'), []);
    // COMPAT 1.13
    await builder.logged(/ERROR nodepool\.image\.upload\.cloud-a: .*Quota/);
  });

  it('an upload to a cloud that is busy beyond its time limit ends with WORK_EXCEPTION (COMPAT 1.5)', async () => {
    await client.build('debian', '5');
    cloud.glance.inject({ times: 1000 }, respondsWith(503));
    const { end, data } = await client.upload('5', 'impatient', 'trusty');
    assert.equal(end, 'WORK_EXCEPTION');
    assert.match(data, /took longer than 2 s/);
  });

  it('a stalled upload ends after image-upload-timeout and leaves nothing (COMPAT 4)', async () => {
    await client.build('debian', '6');
    cloud.glance.inject({ method: 'PUT' }, stallsAfter(4));
    const { end } = await client.upload('6', 'impatient', 'trusty');
    assert.equal(end, 'WORK_EXCEPTION');
    assert.deepEqual(await imagesOf('6'), []);
  });

  it('a temporary error is retried and does not fail the job, which the daemon would not submit again (COMPAT 1.7)', async () => {
    await client.build('debian', '7');
    cloud.glance.inject({ method: 'GET', path: /\/v2\/images\?/ }, respondsWith(503));
    cloud.glance.inject({ method: 'PUT' }, cutsAfter(4));
    const { end, data, packets } = await client.upload('7', 'cloud-a', 'trusty');
    assert.equal(end, 'WORK_COMPLETE');
    assert.deepEqual(
      (await imagesOf('7')).map(({ id }) => id),
      [(await uploaded(data)).id],
      'one image, however many tries it took',
    );
    assert.deepEqual(
      new Set(packets),
      new Set(['WORK_STATUS', 'WORK_COMPLETE']),
      'COMPAT 1.6: no data before the result',
    );
  });

  it('an upload whose file vanishes while it is retried ends with WORK_FAIL (COMPAT 1.5)', async () => {
    await client.build('debian', '10');
    // No attempt succeeds, even if the next one begins before the file is gone.
    cloud.glance.inject({ method: 'PUT', times: 1000 }, respondsWith(503));
    const upload = client.upload('10', 'cloud-a', 'trusty');
    await builder.logged(/upload of image 10 failed; retrying in [\d.]+ s/);
    await rm(join(site.images, '10.raw'));
    assert.equal((await upload).end, 'WORK_FAIL');
    assert.deepEqual(await imagesOf('10'), []);
  });

  it('a conflict about other images in the cloud is not retried', async () => {
    await client.build('debian', '11');
    const body = { message: 'SHOULD_FAIL is set' };
    const refused = cloud.glance.inject(
      { method: 'POST', path: /\/v2\/images$/, times: 1000 },
      respondsWith(409, { body }),
    );
    const { end, data } = await client.upload('11', 'cloud-a', 'trusty');
    assert.equal(end, 'WORK_EXCEPTION');
    assert.match(data, /SHOULD_FAIL is set/);
    assert.equal(refused.hits, 1);
  });

  it('retries of an upload and of its requests end with upload-retry-timeout', async () => {
    await client.build('debian', '12');
    const refused = cloud.glance.inject({ method: 'GET', times: 1000 }, respondsWith(503));
    const { end } = await client.upload('12', 'without-retries', 'trusty');
    assert.equal(end, 'WORK_EXCEPTION');
    assert.equal(refused.hits, 1);
  });

  it('each request to the cloud and the upload send their statsd metrics (COMPAT 1.12)', async () => {
    await client.build('debian', '8');
    await client.upload('8', 'cloud-b', 'trusty-b');
    await statsd.received(/^nodepool\.image_update\.trusty-b\.cloud-b:1\|c$/);
    for (const task of ['GlanceImageList', 'ImageCreate', 'ImageUpload']) {
      await statsd.received(new RegExp(`^nodepool\\.task\\.cloud-b\\.${task}:\\d+\\.000000\\|ms$`));
      await statsd.received(new RegExp(`^nodepool\\.task\\.cloud-b\\.${task}:1\\|c$`));
    }
  });

  it('an upload has a record until its result is sent', async () => {
    await client.build('debian', '9');
    const record = join(site.images, '.nodepool-builder/uploads');
    cloud.glance.inject({ method: 'PUT' }, stallsAfter(4));
    const running = client.upload('9', 'impatient', 'trusty');
    // An entry may vanish between the two calls.
    const entries = async (): Promise<string[]> =>
      await Promise.all(
        (await readdir(record)).map((name) => readFile(join(record, name), 'utf8').catch(() => '')),
      );
    const entry = await waitUntil('the record', async () =>
      (await entries()).find((text) => /"image-id": ?"9"/.test(text)),
    );
    assert.match(entry, /"provider": ?"impatient"/);
    await running;
    cloud.glance.clear(); // the timeout may have ended the upload before its PUT
    const { end } = await client.upload('9', 'cloud-a', 'trusty');
    assert.equal(end, 'WORK_COMPLETE');
    await waitUntil(
      'no record of it',
      async () => !(await entries()).some((text) => /"provider": ?"cloud-a"/.test(text)),
    );
  });
});

/** Installs a qemu-img that records its calls into a directory in PATH. */
async function countConversions(directory: string): Promise<string> {
  const log = join(directory, 'qemu-img.log');
  const program = execFileSync('which', ['qemu-img'], { encoding: 'utf8' }).trim();
  const wrapper = join(directory, 'qemu-img');
  await writeFile(wrapper, `#!/bin/sh\necho "$@" >> ${log}\nexec ${program} "$@"\n`);
  await chmod(wrapper, 0o755);
  return log;
}
