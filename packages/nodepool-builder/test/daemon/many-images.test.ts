// Not a unit test: it starts flock.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { Admin, JobServer } from '@nodepool-builder/gearman-node';
import type { Image } from '@nodepool-builder/image-builder';
import { RecordingLogger } from '../../../../test/fixtures/recording-logger.ts';
import { temporaryDirectory } from '../../../../test/fixtures/scratch-directory.ts';
import { loadConfiguration } from '../../src/configuration/load.ts';
import { NodepoolBuilder } from '../../src/daemon/nodepool-builder.ts';

/** Number of images that appear and disappear. */
const SOME = 50;

/** Number of images that stay. */
const OTHERS = 200;

test('an image that comes or goes changes only its own functions, whatever the number of images', async (t) => {
  const directory = temporaryDirectory(t);
  const images = join(directory, 'images');
  await mkdir(images);
  const put = (id: string): Promise<void> => writeFile(join(images, `${id}.raw`), 'an image');
  for (let index = 0; index < OTHERS; index += 1) await put(`other-${index}`);
  const jobServer = new JobServer();
  const { host, port } = await jobServer.listen(0);
  t.after(() => jobServer.close());
  const file = join(directory, 'nodepool.yaml');
  await writeFile(file, `{images-dir: images, gearman-servers: [{host: ${host}, port: ${port}}]}`);
  const { configuration } = await loadConfiguration(file);
  const builder = await NodepoolBuilder.start({ configuration, logger: () => new RecordingLogger() });
  t.after(() => builder.close());
  const { repository } = builder;

  const lookUps: string[] = [];
  class CountedImages extends Map<string, Image> {
    override has(id: string): boolean {
      lookUps.push(id);
      return super.has(id);
    }
    override keys(): never {
      throw new Error('the daemon lists all images');
    }
  }
  // A copy that follows the repository, because its own map cannot be replaced.
  const counted = new CountedImages(repository.images);
  repository.prependListener('added', (image) => void counted.set(image.id, image));
  repository.prependListener('removed', ({ id }) => void counted.delete(id));
  Object.defineProperty(repository, 'images', { value: counted });

  const settle = async (event: 'added' | 'removed', change: (id: string) => Promise<void>) => {
    const ids = Array.from({ length: SOME }, (_, index) => `some-${index}`);
    const left = new Set(ids);
    repository.on(event, ({ id }) => void left.delete(id));
    for (const id of ids) await change(id);
    while (left.size > 0) await once(repository, event);
  };
  await settle('added', put);
  await settle('removed', (id) => rm(join(images, `${id}.raw`)));
  assert.ok(lookUps.length <= 8 * SOME, `${lookUps.length} look-ups`);
  assert.ok(lookUps.every((id) => id.startsWith('some-')));
  const admin = new Admin({ host, port });
  t.after(() => admin.close());
  const offered = async (): Promise<number> =>
    (await admin.status(({ name }) => name.startsWith('image-upload:'))).length;
  while ((await offered()) !== OTHERS);
});
