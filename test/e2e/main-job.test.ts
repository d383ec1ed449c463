import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { it } from 'node:test';
import { startBuilder } from '../fixtures/builder-process.ts';
import { gearman, offeredFunctions } from '../fixtures/gearman-commands.ts';
import { startGearmand } from '../fixtures/gearmand.ts';
import { createSite } from '../fixtures/site.ts';
import { undoAfter } from '../fixtures/undo-after.ts';
import { waitUntil } from '../fixtures/wait-until.ts';

/** A tiny operating system, built by the real diskimage-builder. */
const MINI = `
  - name: mini
    elements: [mini-os]
    env-vars: {DIB_JOURNAL_SIZE: '4', MINI_MARK: main job}`;

it('a builder builds, uploads and deletes with the real gearmand, gearman, gearadmin and disk-image-create', async (t) => {
  const server = await startGearmand();
  undoAfter(t, () => server.stop());
  const site = await createSite(server.port, MINI);
  undoAfter(t, () => site.remove());
  const builder = await startBuilder(site.config);
  undoAfter(t, () => builder.end('SIGTERM'));
  const offered = (): Promise<string[]> => offeredFunctions(server.port);
  const image = join(site.images, '0000000001.qcow2');

  await waitUntil('image-build:mini', async () => (await offered()).includes('image-build:mini'));
  assert.deepEqual(await offered(), ['image-build:mini']);

  const build = await gearman(server.port, 'image-build:mini', '{"image-id": "0000000001"}');
  assert.deepEqual(build, { code: 0, stdout: '{"image-id": "0000000001"}', stderr: '' });
  assert.deepEqual(
    await offered(),
    ['image-build:mini', 'image-delete:0000000001', 'image-upload:0000000001'],
    'the functions are there before the job has ended',
  );
  const info = execFileSync('qemu-img', ['info', '--output=json', image], { encoding: 'utf8' });
  assert.equal(JSON.parse(info).format, 'qcow2');

  const argument = '{"provider": "pool", "image-name": "mini"}';
  const upload = await gearman(server.port, 'image-upload:0000000001', argument);
  assert.deepEqual(upload, { code: 0, stdout: '{"external-id": "mini-0000000001.qcow2"}', stderr: '' });
  execFileSync('qemu-img', ['compare', image, join(site.pool, 'mini-latest.qcow2')]);

  const deletion = await gearman(server.port, 'image-delete:0000000001', '""');
  assert.deepEqual(deletion, { code: 0, stdout: '', stderr: '' });
  assert.deepEqual(readdirSync(site.images), ['.nodepool-builder']);
  await waitUntil('no functions', async () => (await offered()).length === 1);
  assert.ok(readdirSync(site.pool).includes('mini-0000000001.qcow2'), 'what was uploaded stays');
});
