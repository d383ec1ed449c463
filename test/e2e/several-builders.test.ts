import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { it, type TestContext } from 'node:test';
import type { BuilderProcess } from '../fixtures/builder-process.ts';
import { type CompatSite, createCompatSite } from '../fixtures/compat-site.ts';
import { startGearmand } from '../fixtures/gearmand.ts';
import { NodepoolClient, uploadArgument } from '../fixtures/nodepool-client.ts';
import { undoAfter } from '../fixtures/undo-after.ts';
import { waitUntil } from '../fixtures/wait-until.ts';

/** Starts a build that runs until the test opens the gate. */
const GATED = `
  - {name: gated, elements: [wait]}`;

interface Host {
  readonly site: CompatSite;
  builder: BuilderProcess;
}

async function startHost(t: TestContext, port: number): Promise<Host> {
  const site = await createCompatSite(port, { diskimages: GATED });
  undoAfter(t, () => site.remove());
  const host = { site, builder: await site.start() };
  undoAfter(t, async () => {
    if (isAlive(host)) await host.builder.end('SIGKILL');
  });
  return host;
}

function isAlive({ builder: { child } }: Host): boolean {
  return child.exitCode === null && child.signalCode === null;
}

/** Returns the number of builds at the gate. */
function atTheGate({ builder }: Host): number {
  return builder.log.filter((line) => /nodepool\.image\.build\.gated: waiting/.test(line)).length;
}

async function has({ site }: Host, file: string): Promise<boolean> {
  return (await readdir(site.images)).includes(file);
}

it('several builders share builds, upload the images that they have, and lose no job when one dies', async (t) => {
  const server = await startGearmand();
  undoAfter(t, () => server.stop());
  const hosts = [await startHost(t, server.port), await startHost(t, server.port)] as const;
  const client = await NodepoolClient.connect(server.port);
  undoAfter(t, () => client.close());
  const build = (imageId: string) =>
    client.submit('image-build:gated', JSON.stringify({ 'image-id': imageId }));

  const builds = [build('1'), build('2')];
  await waitUntil('a build at each host', () => hosts.every((host) => atTheGate(host) === 1));
  for (const { site } of hosts) await site.dib.openGate();
  for (const { outcome } of builds) assert.equal((await outcome).end, 'WORK_COMPLETE');
  const [first, second] = (await has(hosts[0], '1.qcow2')) ? hosts : [hosts[1], hosts[0]];
  assert.deepEqual([await has(first, '2.qcow2'), await has(second, '2.qcow2')], [false, true]);

  assert.equal((await client.upload('2', 'pool', 'trusty')).end, 'WORK_COMPLETE');
  assert.deepEqual(await readdir(first.site.pool), []);
  assert.ok((await readdir(second.site.pool)).includes('trusty-2.raw'));

  for (const { site } of hosts) await site.dib.closeGate();
  const third = build('3');
  const [victim] = await waitUntil('the third build', () => {
    const taken = hosts.filter((host) => atTheGate(host) === 2);
    return taken.length > 0 ? taken : undefined;
  });
  const survivor = victim === first ? second : first;
  await victim?.builder.end('SIGKILL');
  await waitUntil('the third build at the other host', () => atTheGate(survivor) === 2);
  await survivor.site.dib.openGate();
  assert.equal((await third.outcome).end, 'WORK_COMPLETE');
  assert.equal(await has(survivor, '3.qcow2'), true);

  const upload = client.submit(
    `image-upload:${victim === first ? '1' : '2'}`,
    uploadArgument('pool', 'trusty'),
  );
  await upload.created;
  if (victim) victim.builder = await victim.site.start();
  assert.equal((await upload.outcome).end, 'WORK_COMPLETE', 'its image waited for it');
});
