import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { it } from 'node:test';
import { startBuilder } from '../fixtures/builder-process.ts';
import { offeredFunctions } from '../fixtures/gearman-commands.ts';
import { startGearmand } from '../fixtures/gearmand.ts';
import { createSite } from '../fixtures/site.ts';
import { undoAfter } from '../fixtures/undo-after.ts';
import { waitUntil } from '../fixtures/wait-until.ts';

it('a builder offers images in images-dir while they exist, however they were added', async (t) => {
  const server = await startGearmand();
  undoAfter(t, () => server.stop());
  const site = await createSite(server.port);
  undoAfter(t, () => site.remove());
  const file = (name: string): string => join(site.images, name);
  const offers = async (id: string): Promise<boolean> => {
    const offered = await offeredFunctions(server.port);
    const [upload, remove] = [`image-upload:${id}`, `image-delete:${id}`].map((name) =>
      offered.includes(name),
    );
    return upload === true && remove === true;
  };

  await writeFile(file('present.raw'), 'was there at the start');
  await mkdir(file('lost+found'));
  await mkdir(file('directory.raw'));
  for (const name of ['.hidden.raw', 'no-extension', 'present.raw.md5', 'a b.raw', 'notes.txt']) {
    await writeFile(file(name), 'is no image');
  }
  const builder = await startBuilder(site.config);
  undoAfter(t, () => builder.end('SIGTERM'));
  await waitUntil('the existing image', () => offers('present'));

  await writeFile(join(site.directory, 'moved.qcow2'), 'content');
  await rename(join(site.directory, 'moved.qcow2'), file('moved.qcow2'));
  await waitUntil('the image that was moved in', () => offers('moved'));

  const slow = createWriteStream(file('slow.raw'));
  slow.write('half of ');
  await once(slow, 'open');
  await writeFile(file('quick.raw'), 'content');
  await waitUntil('the image that was written', () => offers('quick'));
  assert.equal(await offers('slow'), false, 'half an image is not offered');
  slow.end('an image');
  await waitUntil('the image that was written slowly', () => offers('slow'));

  for (const name of ['moved.qcow2', 'quick.raw', 'slow.raw', 'present.raw']) await rm(file(name));
  await waitUntil('all images to disappear', async () => (await offeredFunctions(server.port)).length === 1);
  assert.deepEqual(await offeredFunctions(server.port), ['image-build:docs']);
});
