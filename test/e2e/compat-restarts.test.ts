// Only in test:all: it restarts job servers and builders repeatedly.
import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { Admin } from '@nodepool-builder/gearman-node';
import type { BuilderProcess } from '../fixtures/builder-process.ts';
import { type CompatSite, createCompatSite } from '../fixtures/compat-site.ts';
import { startGeard } from '../fixtures/geard.ts';
import { IS_JOB_FUNCTION } from '../fixtures/gearman-commands.ts';
import { startGearmand } from '../fixtures/gearmand.ts';
import { NodepoolClient } from '../fixtures/nodepool-client.ts';
import { waitUntil } from '../fixtures/wait-until.ts';

/** Starts a build that runs until the test opens the gate. */
const GATED = `
  - {name: gated, elements: [wait]}`;

const SERVERS = { gearmand: startGearmand, "a job server like python's geard": startGeard };

for (const [serverName, startServer] of Object.entries(SERVERS)) {
  const isGearmand = serverName === 'gearmand';

  describe(`a nodepool and its builder over ${serverName}`, () => {
    let server: Awaited<ReturnType<typeof startServer>>;
    let site: CompatSite;
    let builder: BuilderProcess;
    let client: NodepoolClient;

    before(async () => {
      server = await startServer();
    });
    after(() => server.stop());
    beforeEach(async () => {
      site = await createCompatSite(server.port, { diskimages: GATED });
      builder = await site.start();
      client = await NodepoolClient.connect(server.port);
    });
    afterEach(async () => {
      await client.close();
      if (builder.child.exitCode === null && builder.child.signalCode === null) await builder.end('SIGKILL');
      await site.remove();
    });

    /** Returns the number of connections that offer each job function with a prefix. */
    async function offered(prefix: string): Promise<Record<string, number>> {
      const admin = new Admin({ host: '127.0.0.1', port: server.port });
      try {
        const functions = (await admin.status()).filter(
          ({ name, availableWorkers }) =>
            IS_JOB_FUNCTION.test(name) && name.startsWith(prefix) && availableWorkers > 0,
        );
        return Object.fromEntries(functions.map(({ name, availableWorkers }) => [name, availableWorkers]));
      } finally {
        await admin.close();
      }
    }

    async function startGatedBuild(imageId: string): Promise<ReturnType<NodepoolClient['submit']>> {
      const job = client.submit('image-build:gated', JSON.stringify({ 'image-id': imageId }));
      await builder.logged(/nodepool\.image\.build\.gated: waiting/);
      return job;
    }

    it('builds requested during a build run in turn, and uploads and deletions run meanwhile (COMPAT 1.13)', async () => {
      await client.build('debian', '1');
      const gated = await startGatedBuild('2');
      const later = ['3', '4'].map((id) =>
        client.submit('image-build:debian', JSON.stringify({ 'image-id': id })),
      );
      assert.equal((await client.upload('1', 'pool', 'trusty')).end, 'WORK_COMPLETE');
      assert.equal((await client.delete('1')).end, 'WORK_COMPLETE');
      await waitUntil(
        'no image to be there: one build at a time',
        async () => Object.keys(await offered('image-upload:')).length === 0,
      );
      await site.dib.openGate();
      const outcomes = await Promise.all([gated, ...later].map(({ outcome }) => outcome));
      assert.deepEqual(
        outcomes.map(({ data }) => data),
        ['2', '3', '4'].map((id) => `{"image-id": "${id}"}`),
      );
    });

    it('a restarted builder offers its images, each function once (COMPAT 1.2)', async () => {
      await client.build('debian', '1');
      assert.equal(await builder.end('SIGINT'), 0);
      await waitUntil('no functions', async () => Object.keys(await offered('image-')).length === 0);
      builder = await site.start();
      const all = ['image-build:debian', 'image-build:gated', 'image-delete:1', 'image-upload:1'];
      // Its workers connect in sequence.
      await waitUntil(
        'all functions',
        async () => Object.keys(await offered('image-')).length === all.length,
      );
      assert.deepEqual(await offered('image-'), Object.fromEntries(all.map((name) => [name, 1])));
      assert.equal((await client.upload('1', 'pool', 'trusty')).data, '{"external-id": "trusty-1.raw"}');
      assert.equal((await client.delete('1')).end, 'WORK_COMPLETE');
    });

    it('a builder that is stopped waits for its running build, whose result arrives (COMPAT 1.1, mended)', async () => {
      const { outcome } = await startGatedBuild('1');
      const ended = builder.end('SIGINT');
      await builder.logged(/SIGINT: finishing the running jobs/);
      await site.dib.openGate();
      assert.equal((await outcome).data, '{"image-id": "1"}');
      assert.equal(await ended, 0);
    });

    it('geard fails the job of a builder that dies during a build, and gearmand assigns it again (COMPAT 1.6)', async () => {
      const { outcome } = await startGatedBuild('1');
      await builder.end('SIGKILL');
      await site.dib.openGate();
      builder = await site.start();
      if (!isGearmand) {
        assert.equal((await outcome).end, 'WORK_FAIL');
        assert.equal(
          (await client.build('gated', '1')).end,
          'WORK_COMPLETE',
          'nothing of the first try is in its way',
        );
      }
      if (isGearmand) assert.equal((await outcome).data, '{"image-id": "1"}');
      const files = (await readdir(site.images)).filter((name) => !name.startsWith('.'));
      assert.deepEqual(files.toSorted(), ['1.d', '1.qcow2']);
    });

    it('each function is registered once after the job server restarts during a build (COMPAT 1.6)', async () => {
      await client.build('debian', '1');
      const { outcome } = await startGatedBuild('2');
      await server.restart();
      assert.equal((await outcome).end, 'lost');
      await site.dib.openGate();
      client = await NodepoolClient.connect(server.port);
      const all = [
        'image-build:debian',
        'image-build:gated',
        'image-delete:1',
        'image-delete:2',
        'image-upload:1',
        'image-upload:2',
      ];
      await waitUntil(
        'all functions',
        async () => Object.keys(await offered('image-')).length === all.length,
      );
      assert.deepEqual(await offered('image-'), Object.fromEntries(all.map((name) => [name, 1])));
      assert.equal(
        (await client.delete('2')).end,
        'WORK_COMPLETE',
        'nodepool deletes what it lost sight of (1.7)',
      );
      assert.equal((await client.build('gated', '3')).data, '{"image-id": "3"}');
    });

    it('a nodepool daemon that disconnects during a build does not disturb the builder (COMPAT 1.6)', async () => {
      await startGatedBuild('1');
      await client.close();
      await site.dib.openGate();
      client = await NodepoolClient.connect(server.port);
      assert.equal((await client.build('debian', '2')).data, '{"image-id": "2"}');
      assert.ok(!builder.log.some((line) => /was lost/.test(line)), 'its connection stays');
    });

    it('a builder that starts before the job server waits for it (COMPAT 1.2)', async () => {
      await builder.end('SIGINT');
      await client.close();
      await server.kill();
      builder = await site.start();
      await server.restart();
      client = await NodepoolClient.connect(server.port);
      assert.equal((await client.build('debian', '1')).data, '{"image-id": "1"}');
    });
  });
}
