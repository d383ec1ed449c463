// Only in test:all: it restarts job servers repeatedly.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { Admin } from '@nodepool-builder/gearman-node';
import type { BuilderProcess } from '../fixtures/builder-process.ts';
import { type CompatSite, createCompatSite } from '../fixtures/compat-site.ts';
import { createGatedQemuImg, type GatedQemuImg } from '../fixtures/gated-qemu-img.ts';
import { type Geard, startGeard } from '../fixtures/geard.ts';
import { IS_JOB_FUNCTION } from '../fixtures/gearman-commands.ts';
import { type Gearmand, startGearmand } from '../fixtures/gearmand.ts';
import { NodepoolClient, uploadArgument } from '../fixtures/nodepool-client.ts';
import { waitUntil } from '../fixtures/wait-until.ts';

const SERVERS = { gearmand: startGearmand, "a job server like python's geard": startGeard };

/** A job server with its nodepool daemon. */
interface Side {
  readonly server: Geard | Gearmand;
  client: NodepoolClient;
}

for (const [serverName, startServer] of Object.entries(SERVERS)) {
  describe(`one builder, two of ${serverName}`, () => {
    let a: Side;
    let b: Side;
    let site: CompatSite;
    let qemuImg: GatedQemuImg;
    let builder: BuilderProcess;

    beforeEach(async () => {
      const [one, other] = [await startServer(), await startServer()];
      site = await createCompatSite(one.port, { otherServers: [other.port] });
      qemuImg = await createGatedQemuImg(site.dib.directory);
      execFileSync('qemu-img', ['create', '-q', '-f', 'qcow2', join(site.images, '1.qcow2'), '1M']);
      execFileSync('qemu-img', ['create', '-q', '-f', 'qcow2', join(site.images, '2.qcow2'), '1M']);
      builder = await site.start({}, '--upload-workers', '1');
      a = { server: one, client: await NodepoolClient.connect(one.port) };
      b = { server: other, client: await NodepoolClient.connect(other.port) };
      await offered(a, ALL);
      await offered(b, ALL);
    });
    afterEach(async () => {
      await qemuImg.openGate();
      for (const { client } of [a, b]) await client.close();
      assert.equal(await builder.end('SIGINT'), 0);
      for (const { server } of [a, b]) await server.stop();
      await site.remove();
    });

    it('jobs from one of two job servers change the functions on both (COMPAT 1.3)', async () => {
      assert.equal((await a.client.build('debian', '3')).data, '{"image-id": "3"}');
      await offered(a, [...ALL, ...of('3')]);
      await offered(b, [...ALL, ...of('3')]);
      for (const { client } of [b, a]) {
        const upload = await client.upload('3', 'pool', 'trusty');
        assert.equal(upload.data, '{"external-id": "trusty-3.raw"}');
      }
      assert.equal((await b.client.build('debian', '4')).data, '{"image-id": "4"}');
      assert.equal((await b.client.delete('3')).end, 'WORK_COMPLETE');
      await offered(a, [...ALL, ...of('4')]);
      await offered(b, [...ALL, ...of('4')]);
    });

    it('uploads from two job servers run one after the other with one upload worker (COMPAT 1.3)', async () => {
      const uploads = [
        a.client.submit('image-upload:1', uploadArgument('pool', 'trusty')),
        b.client.submit('image-upload:2', uploadArgument('pool', 'trusty')),
      ];
      for (const { created } of uploads) await created;
      await qemuImg.waiting();
      await qemuImg.openGate();
      const outcomes = await Promise.all(uploads.map(({ outcome }) => outcome));
      assert.deepEqual(
        outcomes.map(({ data }) => data),
        ['{"external-id": "trusty-1.raw"}', '{"external-id": "trusty-2.raw"}'],
      );
      assert.deepEqual(await qemuImg.conversions(), ['begin', 'end', 'begin', 'end']);
      const uploaded = (await readdir(site.pool)).filter((name) => name.endsWith('.raw'));
      assert.deepEqual(uploaded.toSorted(), ['trusty-1.raw', 'trusty-2.raw', 'trusty-latest.raw']);
    });

    it('a job server that dies during its upload is served again when it returns, and the other one meanwhile (COMPAT 1.3)', async () => {
      const lost = a.client.submit('image-upload:1', uploadArgument('pool', 'trusty'));
      await qemuImg.waiting();
      const waiting = b.client.submit('image-upload:2', uploadArgument('pool', 'trusty'));
      await waiting.created;
      await a.server.kill();
      assert.equal((await lost.outcome).end, 'lost');
      await qemuImg.openGate();
      assert.equal((await waiting.outcome).data, '{"external-id": "trusty-2.raw"}');
      assert.equal((await b.client.build('debian', '3')).data, '{"image-id": "3"}');
      assert.equal((await b.client.delete('2')).end, 'WORK_COMPLETE');
      await offered(b, ['image-build:debian', ...of('1'), ...of('3')]);

      await a.server.restart();
      a.client = await NodepoolClient.connect(a.server.port);
      assert.equal((await a.client.upload('3', 'pool', 'trusty')).data, '{"external-id": "trusty-3.raw"}');
      await offered(a, ['image-build:debian', ...of('1'), ...of('3')]);
    });
  });
}

/** Waits until a server has exactly these job functions, each once. */
async function offered({ server }: Side, expected: readonly string[]): Promise<void> {
  const admin = new Admin({ host: '127.0.0.1', port: server.port });
  let last: string[] = [];
  try {
    await waitUntil(expected.join(', '), async () => {
      last = (await admin.status()).flatMap(({ name, availableWorkers }) =>
        Array.from({ length: IS_JOB_FUNCTION.test(name) ? availableWorkers : 0 }, () => name),
      );
      return last.toSorted().join() === expected.toSorted().join();
    });
  } catch (error) {
    throw new Error(`the functions are ${last.join(', ')}`, { cause: error });
  } finally {
    await admin.close();
  }
}

function of(imageId: string): string[] {
  return [`image-upload:${imageId}`, `image-delete:${imageId}`];
}

/** Functions of the builder at its start. */
const ALL = ['image-build:debian', ...of('1'), ...of('2')];
