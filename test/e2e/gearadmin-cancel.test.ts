// Only in test:all: it repeats two cases for each job server.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { Admin, Client } from '@nodepool-builder/gearman-node';
import { freePort } from '../../scripts/free-port.ts';
import { type BuilderProcess, startBuilder } from '../fixtures/builder-process.ts';
import { runCommand } from '../fixtures/command-outcome.ts';
import { startGearmand } from '../fixtures/gearmand.ts';
import { startGearmandCommand } from '../fixtures/gearmand-command.ts';
import { createManagedSite, endAfter, type ManagedSite, spawnManager } from '../fixtures/managed-site.ts';
import { undoAfter } from '../fixtures/undo-after.ts';
import { waitUntil } from '../fixtures/wait-until.ts';

interface CancelSite extends ManagedSite {
  readonly builder: BuilderProcess;
  /** File that makes builds wait while it exists. */
  readonly gate: string;
  readonly client: Client;
  /** Returns the handles of the server's jobs, by whether they run. */
  jobs(): Promise<Readonly<Record<'running' | 'waiting', readonly string[]>>>;
  /** Cancels a job with Debian's gearadmin. */
  cancel(handle: string): Promise<void>;
}

/** Starts a site with a job server, and a builder that builds one of two images at a time. */
async function startSite(t: TestContext, { port, options = [] }: Server): Promise<CancelSite> {
  const site = await createManagedSite(t, {}, port);
  const gate = join(site.directory, 'gate');
  await writeFile(gate, '');
  const script = `while [ -e '${gate}' ]; do sleep 0.1; done; truncate -s 1M "$1"`;
  const command = ['sh', '-c', script, 'sh', '{output.raw}'];
  await site.configure({
    diskimages: ['docs', 'more'].map((name) => ({ name, builder: 'command', formats: ['raw'], command })),
    providers: [],
  });
  const builder = endAfter(t, await startBuilder(site.config, ...options));
  const server = { host: '127.0.0.1', port };
  const [client, admin] = [new Client({ servers: [server] }), new Admin(server)];
  undoAfter(t, () => Promise.all([client.close(), admin.close()]));
  const jobs = async (): Promise<Record<'running' | 'waiting', readonly string[]>> => {
    const handles = (await admin.showJobs()).filter(({ ignored }) => !ignored).map(({ handle }) => handle);
    const states = await Promise.all(handles.map((handle) => client.status(handle)));
    return {
      running: handles.filter((_, index) => states[index]?.running === true),
      waiting: handles.filter((_, index) => states[index]?.running === false),
    };
  };
  const cancel = async (handle: string): Promise<void> => {
    const args = ['-h', '127.0.0.1', '-p', String(port), `--cancel-job=${handle}`];
    await promisify(execFile)('gearadmin', args);
  };
  return { ...site, builder, gate, client, jobs, cancel };
}

interface Server {
  readonly port: number;
  /** Options of the builder. */
  readonly options?: readonly string[];
}

const SERVERS: Readonly<Record<string, (t: TestContext) => Promise<Server>>> = {
  gearmand: async (t) => {
    const server = await startGearmand();
    undoAfter(t, () => server.stop());
    return server;
  },
  'nodepool-builder gearmand': async (t) => (await startGearmandCommand(t)).address,
  'the embedded server': async () => ({ port: await freePort(), options: ['--embedded-gearmand'] }),
};

for (const [name, startServer] of Object.entries(SERVERS)) {
  describe(`gearadmin --cancel-job at ${name}`, () => {
    test('gearadmin --cancel-job stops a running build, and the waiting command reports it', async (t) => {
      const site = await startSite(t, await startServer(t));
      const build = runCommand('image-build', 'docs', '--image-id', 'docs-1', '-c', site.config);
      const [handle = ''] = await waitUntil('a job', async () => {
        const { running } = await site.jobs();
        return running.length > 0 && running;
      });
      await site.cancel(handle);
      const { code, stderr } = await build;
      assert.match(stderr, /^nodepool-builder: image-build:docs was cancelled by gearadmin$/m);
      assert.equal(code, 6);
      await site.builder.logged(/build \S+ of docs was cancelled by gearadmin/);
      assert.deepEqual(await readdir(join(site.images, '.nodepool-builder/staging')), []);
    });

    test('gearadmin --cancel-job stops what the manager waits for, and a waiting build never runs', async (t) => {
      const site = await startSite(t, await startServer(t));
      const manager = spawnManager(t, site.config);
      const [waiting = ''] = await waitUntil('a waiting build', async () => {
        const { running, waiting: found } = await site.jobs();
        return running.length === 1 && found.length === 1 && found;
      });
      const states = async (): Promise<readonly (readonly unknown[])[]> =>
        (await site.list('dib-image-list'))
          .map(({ state, error }) => [state, error])
          .toSorted(([one], [other]) => String(one).localeCompare(String(other)));
      await site.cancel(waiting);
      await manager.logged(/build \S+ was cancelled by gearadmin/);
      const cancelled = ['cancelled', 'cancelled by gearadmin (on the job server)'];
      assert.deepEqual(await states(), [['building', null], cancelled]);
      await rm(site.gate);
      await manager.logged(/build \S+ is ready/);
      assert.deepEqual(await states(), [cancelled, ['ready', null]]);

      await writeFile(site.gate, '');
      const started = site.builder.log.filter((line) => /build of \w+: image/.test(line));
      assert.equal(started.length, 1, started.join('\n'));
      assert.equal((await runCommand('rebuild', 'docs', '-c', site.config)).code, 0);
      const [running = ''] = await waitUntil('the next build', async () => {
        const { running: found } = await site.jobs();
        return found.length > 0 && found;
      });
      await site.cancel(running);
      await site.builder.logged(/build \S+ of docs was cancelled by gearadmin/);
      await waitUntil('the record of the build', async () =>
        (await states()).every(([state]) => state === 'cancelled' || state === 'ready'),
      );
      assert.equal((await states()).filter(([state]) => state === 'cancelled').length, 2);
    });
  });
}

test('our job server also stops a cancelled build whose client does not know of cancelling', async (t) => {
  const site = await startSite(t, (await startGearmandCommand(t)).address);
  const job = site.client.submit('image-build:docs', '{"image-id": "docs-1"}');
  const types = (async (): Promise<readonly string[]> => {
    const seen: string[] = [];
    try {
      for await (const { type } of job) seen.push(type);
    } catch {} // the job fails
    return seen;
  })();
  const handle = await job.handle;
  await waitUntil('the build', async () => (await site.jobs()).running.includes(handle));
  await site.cancel(handle);
  await assert.rejects(job.result, { code: 'job-failed' });
  assert.equal((await types).includes('warning'), false, "nodepool's daemon would take it for the result");
  await site.builder.logged(/build \S+ of docs was cancelled by gearadmin/);
});
