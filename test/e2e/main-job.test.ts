import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { type BuilderProcess, startBuilder } from '../fixtures/builder-process.ts';
import { gearman, offeredFunctions } from '../fixtures/gearman-commands.ts';
import { type Gearmand, startGearmand } from '../fixtures/gearmand.ts';
import { createSite, type Site } from '../fixtures/site.ts';
import { waitUntil } from '../fixtures/wait-until.ts';

/** A tiny operating system, made by the real diskimage-builder. */
const MINI = `
  - name: mini
    elements: [mini-os]
    env-vars: {DIB_JOURNAL_SIZE: '4', MINI_MARK: main job}`;

describe('the main job, with the real gearmand, gearman, gearadmin and disk-image-create', () => {
  let server: Gearmand;
  let site: Site;
  let builder: BuilderProcess;

  before(async () => {
    server = await startGearmand();
    site = await createSite(server.port, MINI);
    builder = await startBuilder(site.config);
  });
  after(async () => {
    await builder.end('SIGTERM');
    await server.stop();
    await site.remove();
  });

  it('offers to build what is configured', async () => {
    await waitUntil('image-build:mini', async () =>
      (await offeredFunctions(server.port)).includes('image-build:mini'),
    );
    assert.deepEqual(await offeredFunctions(server.port), ['image-build:mini']);
  });

  it('builds an image, and offers to upload and to delete it before the job has ended', async () => {
    const { code, stdout, stderr } = await gearman(
      server.port,
      'image-build:mini',
      '{"image-id": "0000000001"}',
    );
    assert.equal(code, 0, stderr);
    assert.equal(stdout, '{"image-id":"0000000001"}');
    assert.deepEqual(await offeredFunctions(server.port), [
      'image-build:mini',
      'image-delete:0000000001',
      'image-upload:0000000001',
    ]);
    const image = join(site.images, '0000000001.qcow2');
    const { format } = JSON.parse(
      execFileSync('qemu-img', ['info', '--output=json', image], { encoding: 'utf8' }),
    );
    assert.equal(format, 'qcow2');
  });

  it('carries the image to the provider', async () => {
    const payload = '{"provider": "pool", "image-name": "mini"}';
    const { code, stdout, stderr } = await gearman(server.port, 'image-upload:0000000001', payload);
    assert.equal(code, 0, stderr);
    assert.equal(stdout, '{"external-id":"mini-0000000001.qcow2"}');
    execFileSync('qemu-img', [
      'compare',
      join(site.images, '0000000001.qcow2'),
      join(site.pool, 'mini-latest.qcow2'),
    ]);
  });

  it('deletes the image, and offers nothing of it any more', async () => {
    const { code, stdout, stderr } = await gearman(server.port, 'image-delete:0000000001', '""');
    assert.equal(code, 0, stderr);
    assert.equal(stdout, '');
    assert.deepEqual(readdirSync(site.images), ['.nodepool-builder']);
    await waitUntil('its functions to go', async () => (await offeredFunctions(server.port)).length === 1);
    assert.ok(readdirSync(site.pool).includes('mini-0000000001.qcow2'), 'what was uploaded stays');
  });
});
