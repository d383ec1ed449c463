// Only in test:all: it kills a builder in each of its jobs.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { Admin, Client } from '@nodepool-builder/gearman-node';
import { type BuilderProcess, startBuilder } from '../fixtures/builder-process.ts';
import { offeredFunctions } from '../fixtures/gearman-commands.ts';
import { type Gearmand, startGearmand } from '../fixtures/gearmand.ts';
import { setUp } from '../fixtures/set-up.ts';
import { createSite, DOCS, type Site } from '../fixtures/site.ts';
import { waitUntil } from '../fixtures/wait-until.ts';

/** Number of kills per kind of job, spread evenly over its duration. */
const KILLS = 3;

const MINI = `
  - name: mini
    elements: [mini-os]
    env-vars: {DIB_JOURNAL_SIZE: '4'}`;

let server: Gearmand;
let admin: Admin;
let client: Client;
let site: Site;
let builder: BuilderProcess;

setUp(async (undo) => {
  server = await startGearmand();
  undo(() => server.stop());
  const address = { host: '127.0.0.1', port: server.port };
  admin = new Admin(address);
  undo(() => admin.close());
  client = new Client({ servers: [address] });
  undo(() => client.close());
});
beforeEach(async () => {
  site = await createSite(server.port, DOCS + MINI);
  builder = await startBuilder(site.config);
});
afterEach(async () => {
  await builder.end('SIGTERM');
  await site.remove();
});

/**
 * Runs a job in a builder that is killed after `milliseconds`, or in its successor.
 *
 * @returns whether the job was done before the kill
 */
async function doDespiteKill(functionName: string, argument: string, milliseconds: number): Promise<boolean> {
  const job = client.submit(functionName, argument);
  await job.handle;
  await delay(milliseconds); // the time of the kill is varied, so no event exists
  await builder.end('SIGKILL');
  await waitUntil('gearmand to notice the loss of the builder', async () => {
    return (await admin.status()).every(({ availableWorkers }) => availableWorkers === 0);
  });
  const isDone = (await admin.status()).every(({ total }) => total === 0);
  builder = await startBuilder(site.config);
  await job;
  await waitUntil('the job to leave the queue', async () => {
    return (await admin.status()).every(({ total }) => total === 0);
  });
  return isDone;
}

/** Submits a job without a kill. Returns its duration in milliseconds. */
async function durationOf(functionName: string, argument: string): Promise<number> {
  const start = performance.now();
  await client.submit(functionName, argument);
  return performance.now() - start;
}

function moments(duration: number): number[] {
  return Array.from({ length: KILLS }, (_, index) => (duration * (index + 0.5)) / KILLS);
}

/** Returns the recorded files of an image, with the checksums that a builder may compute after its start. */
async function checksumsOf(imageId: string): Promise<{ format: string; sha256: string }[]> {
  const manifest = join(site.images, '.nodepool-builder/manifests', `${imageId}.json`);
  return await waitUntil(`the checksums of ${imageId}`, async () => {
    const { files } = JSON.parse(await readFile(manifest, 'utf8'));
    return files.length > 0 && files;
  });
}

/** Checks that images-dir contains only complete images, which are offered. */
async function assertWhole(...imageIds: readonly string[]): Promise<void> {
  const files: string[] = [];
  for (const id of imageIds) {
    for (const { format, sha256 } of await checksumsOf(id)) {
      const content = await readFile(join(site.images, `${id}.${format}`));
      assert.equal(createHash('sha256').update(content).digest('hex'), sha256);
      files.push(`${id}.${format}`);
    }
  }
  const workspace = join(site.images, '.nodepool-builder');
  for (const directory of ['staging', 'trash', 'deletes']) {
    assert.deepEqual(await readdir(join(workspace, directory)), [], directory);
  }
  const manifests = await readdir(join(workspace, 'manifests'));
  assert.deepEqual(manifests.toSorted(), imageIds.map((id) => `${id}.json`).toSorted());
  assert.deepEqual((await readdir(site.images)).toSorted(), ['.nodepool-builder', ...files].toSorted());
  const expected = imageIds.flatMap((id) => [`image-delete:${id}`, `image-upload:${id}`]);
  await waitUntil('the functions of the images', async () => {
    const offered = (await offeredFunctions(server.port)).filter((name) => !name.startsWith('image-build:'));
    return JSON.stringify(offered) === JSON.stringify(expected.toSorted());
  });
}

describe('SIGKILL and a restart', () => {
  it('a build job runs once despite SIGKILL and a restart, and the image is complete', async () => {
    const duration = await durationOf('image-build:docs', '{"image-id": "warm-up"}');
    const ids = ['warm-up'];
    for (const [index, moment] of moments(duration).entries()) {
      await doDespiteKill('image-build:docs', `{"image-id": "built-${index}"}`, moment);
      ids.push(`built-${index}`);
      await assertWhole(...ids);
    }
  });

  it('an upload despite SIGKILL and a restart leaves one complete image in the cloud and nothing else', async () => {
    const argument = '{"provider": "pool", "image-name": "docs"}';
    await durationOf('image-build:docs', '{"image-id": "warm-up"}');
    const duration = await durationOf('image-upload:warm-up', argument);
    const uploaded = ['docs-warm-up.qcow2'];
    for (const [index, moment] of moments(duration).entries()) {
      const id = `uploaded-${index}`;
      await client.submit('image-build:docs', JSON.stringify({ 'image-id': id }));
      await doDespiteKill(`image-upload:${id}`, argument, moment);
      uploaded.push(`docs-${id}.qcow2`);
      const there = (await readdir(site.pool)).filter((name) => !name.endsWith('.json'));
      assert.deepEqual(there.toSorted(), [...uploaded, 'docs-latest.qcow2'].toSorted());
      const local = await readFile(join(site.images, `${id}.qcow2`));
      assert.ok((await readFile(join(site.pool, `docs-${id}.qcow2`))).equals(local));
    }
  });

  it('a deletion despite SIGKILL and a restart removes the image, and the job gets a result', async () => {
    await durationOf('image-build:docs', '{"image-id": "warm-up"}');
    const duration = await durationOf('image-delete:warm-up', '');
    for (const [index, moment] of moments(duration).entries()) {
      const id = `deleted-${index}`;
      await client.submit('image-build:docs', JSON.stringify({ 'image-id': id }));
      const isDone = await doDespiteKill(`image-delete:${id}`, '', moment);
      // A builder that was killed just after its result still has the record of the deletion. Its successor offers the
      // function as long as the job may return, and runs it.
      const isRemembered = existsSync(join(site.images, '.nodepool-builder/deleted', id));
      if (isDone && isRemembered) await client.submit(`image-delete:${id}`, '');
      await assertWhole();
    }
  });

  it('SIGKILL during disk-image-create leaves no processes, mounts and loop devices after a restart', async () => {
    const job = client.submit('image-build:mini', '{"image-id": "0001"}');
    // A failed job ends the test with its error.
    await Promise.race([builder.logged(/nodepool\.image\.build\.mini: .*Target: install\.d/), job]);
    await builder.end('SIGKILL');
    builder = await startBuilder(site.config);
    assert.equal(String(await job), '{"image-id": "0001"}');
    await assertWhole('0001');
    assert.ok(existsSync('/dev/null'), 'the bind mount of /dev was undone before its directory was removed');
    const mounts = await readFile('/proc/self/mountinfo', 'utf8');
    assert.ok(!mounts.includes(site.images), 'no mount is left');
  });
});
