import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdir, readFile, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { Admin } from '@nodepool-builder/gearman-node';
import type { BuilderProcess } from '../fixtures/builder-process.ts';
import { type CompatSite, createCompatSite } from '../fixtures/compat-site.ts';
import { pausesAfter } from '../fixtures/fault-proxy/faults.ts';
import { createGatedQemuImg, type GatedQemuImg } from '../fixtures/gated-qemu-img.ts';
import { IS_JOB_FUNCTION } from '../fixtures/gearman-commands.ts';
import { type Gearmand, startGearmand } from '../fixtures/gearmand.ts';
import { NodepoolClient, uploadArgument } from '../fixtures/nodepool-client.ts';
import { cloudsYaml } from '../fixtures/openstack/account.ts';
import { type FaultyOpenStack, faultyOpenStack } from '../fixtures/openstack/faulty-openstack.ts';
import { openStack } from '../fixtures/openstack/openstack.ts';
import { setUp } from '../fixtures/set-up.ts';
import { waitUntil } from '../fixtures/wait-until.ts';

const CLOUD = `
  - name: cloud
    cloud: mycloud
    image-type: raw
    rate: 0.001
    max-servers: 10
    images: [{name: trusty, diskimage: debian, min-ram: 8192}]`;

/** Size in bytes, far more than the socket buffers on the way to the cloud. */
const CLOUD_IMAGE = 64 * 2 ** 20;

/** Size in bytes of an image that takes about a second to copy, long after its first progress. */
const DIRECTORY_IMAGE = 256 * 2 ** 20;

describe('deleting an image during its upload, over gearmand', () => {
  let cloud: FaultyOpenStack;
  let server: Gearmand;
  let site: CompatSite;
  let qemuImg: GatedQemuImg;
  let builder: BuilderProcess;
  let client: NodepoolClient;
  let admin: Admin;

  setUp(async (undo) => {
    cloud = await faultyOpenStack(await (await openStack()).createAccount());
    undo(() => cloud.close());
    server = await startGearmand();
    undo(() => server.stop());
    site = await createCompatSite(server.port, { providers: CLOUD });
    undo(() => site.remove());
    qemuImg = await createGatedQemuImg(site.dib.directory);
    const clouds = join(site.directory, 'clouds.yaml');
    await writeFile(clouds, cloudsYaml({ mycloud: cloud.account.cloud() }));
    builder = await site.start({ OS_CLIENT_CONFIG_FILE: clouds });
    undo(async () => assert.equal(await builder.end('SIGINT'), 0));
    client = await NodepoolClient.connect(server.port);
    undo(() => client.close());
    admin = new Admin({ host: '127.0.0.1', port: server.port });
    undo(() => admin.close());
  });

  /** Returns the job functions of an image with their numbers of jobs. */
  async function functionsOf(imageId: string): Promise<Record<string, number>> {
    const status = (await admin.status()).filter(
      ({ name, availableWorkers, total }) =>
        IS_JOB_FUNCTION.test(name) && name.endsWith(`:${imageId}`) && availableWorkers + total > 0,
    );
    return Object.fromEntries(status.map(({ name, total }) => [name, total]));
  }

  /** Writes a sparse image with a little data at its beginning to `images-dir`. */
  async function drop(imageId: string, size: number): Promise<void> {
    const path = join(site.images, `${imageId}.raw`);
    await writeFile(path, 'content');
    await truncate(path, size);
    await waitUntil(
      'the image to be offered',
      async () => `image-upload:${imageId}` in (await functionsOf(imageId)),
    );
  }

  /** Waits until the only image is neither on disk nor offered. */
  async function isGone(imageId: string): Promise<void> {
    const own = join(site.images, '.nodepool-builder');
    assert.deepEqual(await readdir(site.images), ['.nodepool-builder']);
    for (const name of ['manifests', 'staging', 'trash', 'deletes']) {
      assert.deepEqual(await readdir(join(own, name)), [], name);
    }
    // The record of an upload stays until the job server has acknowledged the result.
    await waitUntil('no record', async () => (await readdir(join(own, 'uploads'))).length === 0);
    await waitUntil('no functions', async () => Object.keys(await functionsOf(imageId)).length === 0);
  }

  it('deleting an image during a PUT fails its upload and leaves nothing in the cloud', async () => {
    await drop('1', CLOUD_IMAGE);
    const deleted = Promise.withResolvers<void>();
    const paused = cloud.glance.inject({ method: 'PUT' }, pausesAfter(1, deleted.promise));
    const upload = client.submit('image-upload:1', uploadArgument('cloud', 'trusty'));
    await waitUntil('the PUT request', () => paused.hits === 1);
    assert.equal((await client.delete('1')).end, 'WORK_COMPLETE', 'it does not wait for the upload');
    deleted.resolve();
    assert.equal((await upload.outcome).end, 'WORK_FAIL');
    await builder.logged(/upload of 1 as trusty failed: .*1\.raw" no longer exists; build the image again/);
    assert.deepEqual(await cloud.account.images(), []);
    const puts = cloud.glance.requests.filter(({ method }) => method === 'PUT');
    assert.deepEqual(
      puts.map(({ status }) => status),
      [undefined],
      'it is neither tried anew nor handed out again',
    );
    await isGone('1');
  });

  it('deleting an image during its copy to a directory leaves a complete copy there', async () => {
    await drop('2', DIRECTORY_IMAGE);
    const digest = createHash('md5')
      .update(await readFile(join(site.images, '2.raw')))
      .digest('hex');
    const upload = client.submit('image-upload:2', uploadArgument('pool', 'trusty'));
    await upload.progressed;
    assert.equal((await client.delete('2')).end, 'WORK_COMPLETE');
    assert.equal((await upload.outcome).data, '{"external-id": "trusty-2.raw"}');
    const content = await readFile(join(site.pool, 'trusty-2.raw'));
    assert.equal(createHash('md5').update(content).digest('hex'), digest);
    assert.deepEqual((await readdir(site.pool)).toSorted(), [
      'trusty-2.raw',
      'trusty-2.raw.json',
      'trusty-latest.raw',
    ]);
    await isGone('2');
  });

  it('deleting an image during its conversion ends the conversion and fails the upload', async () => {
    execFileSync('qemu-img', ['create', '-q', '-f', 'qcow2', join(site.images, '3.qcow2'), '1M']);
    await waitUntil('the image to be offered', async () => 'image-upload:3' in (await functionsOf('3')));
    const upload = client.submit('image-upload:3', uploadArgument('cloud', 'trusty'));
    await qemuImg.waiting();
    assert.equal((await client.delete('3')).end, 'WORK_COMPLETE');
    await qemuImg.openGate();
    assert.equal((await upload.outcome).end, 'WORK_FAIL');
    assert.match(
      await builder.logged(/upload of 3 as trusty failed/),
      /image 3 does not exist here; it was deleted/,
    );
    assert.deepEqual(await qemuImg.conversions(), ['begin'], 'it was ended before the gate opened');
    assert.deepEqual(await cloud.account.images(), []);
    await isGone('3');
  });
});
