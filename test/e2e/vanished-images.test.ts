// Only in test:all: it repeats its cases for each job server.
import assert from 'node:assert/strict';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { it, type TestContext } from 'node:test';
import { Admin } from '@nodepool-builder/gearman-node';
import type { BuilderProcess } from '../fixtures/builder-process.ts';
import { type CompatSite, createCompatSite } from '../fixtures/compat-site.ts';
import { offeredFunctions } from '../fixtures/gearman-commands.ts';
import { startGearmand } from '../fixtures/gearmand.ts';
import { startGearmandCommand } from '../fixtures/gearmand-command.ts';
import { NodepoolClient, uploadArgument } from '../fixtures/nodepool-client.ts';
import { undoAfter } from '../fixtures/undo-after.ts';
import { waitUntil } from '../fixtures/wait-until.ts';

/** Timeout in seconds for the result of a job. */
const LIMIT = 10;

interface Host {
  readonly site: CompatSite;
  readonly builder: BuilderProcess;
}

/** Starts a builder with the image 1. */
async function startHost(t: TestContext, port: number): Promise<Host> {
  const site = await createCompatSite(port);
  undoAfter(t, () => site.remove());
  await writeFile(join(site.images, '1.raw'), 'content');
  const builder = await site.start();
  undoAfter(t, () => builder.end('SIGINT'));
  return { site, builder };
}

async function offers(port: number, imageId: string): Promise<boolean> {
  return (await offeredFunctions(port)).some((name) => name.endsWith(`:${imageId}`));
}

const SERVERS: Readonly<Record<string, (t: TestContext) => Promise<number>>> = {
  gearmand: async (t) => {
    const server = await startGearmand();
    undoAfter(t, () => server.stop());
    return server.port;
  },
  'our own job server': async (t) => (await startGearmandCommand(t)).address.port,
};

for (const [name, startServer] of Object.entries(SERVERS)) {
  it(`jobs for an image that was removed by hand get a result, with ${name}`, async (t) => {
    const port = await startServer(t);
    const { site } = await startHost(t, port);
    const client = await NodepoolClient.connect(port);
    undoAfter(t, () => client.close());
    await waitUntil('the image to be offered', () => offers(port, '1'));
    await rm(join(site.images, '1.raw'));
    await waitUntil('no functions', async () => !(await offers(port, '1')));

    const begun = performance.now();
    const upload = client.submit('image-upload:1', uploadArgument('pool', 'trusty'));
    const deletion = client.submit('image-delete:1', '""');
    assert.equal((await upload.outcome).end, 'WORK_FAIL');
    assert.equal((await deletion.outcome).end, 'WORK_COMPLETE');
    assert.ok(performance.now() - begun < LIMIT * 1000);
    await waitUntil('no functions again', async () => !(await offers(port, '1')));
  });
}

it('a job for an image that another builder still has is left to that builder', async (t) => {
  const port = await (SERVERS.gearmand ?? assert.fail())(t);
  const [without, having] = [await startHost(t, port), await startHost(t, port)];
  const client = await NodepoolClient.connect(port);
  undoAfter(t, () => client.close());
  const admin = new Admin({ host: '127.0.0.1', port });
  undoAfter(t, () => admin.close());
  const isOfferedBy = async (builders: number): Promise<boolean> => {
    const functions = await admin.status();
    return functions.some((each) => each.name === 'image-upload:1' && each.availableWorkers === builders);
  };
  await waitUntil('both builders to offer the image', () => isOfferedBy(2));
  await rm(join(without.site.images, '1.raw'));
  await waitUntil('a single builder to offer the image', () => isOfferedBy(1));
  assert.equal((await client.upload('1', 'pool', 'trusty')).end, 'WORK_COMPLETE');
  await having.builder.logged(/upload of 1 .*: done/);
  assert.ok(!without.builder.log.some((line) => /offering \S+ again/.test(line)));
});
