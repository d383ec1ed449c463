import assert from 'node:assert/strict';
import { copyFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { it } from 'node:test';
import { importedImageId } from '@nodepool-builder/image-builder/internal';
import { startBuilder } from '../fixtures/builder-process.ts';
import { startGearmand } from '../fixtures/gearmand.ts';
import { createManagedSite, endAfter, provider, spawnManager } from '../fixtures/managed-site.ts';
import { undoAfter } from '../fixtures/undo-after.ts';
import { waitUntil } from '../fixtures/wait-until.ts';

const NOBLE = {
  name: 'noble',
  'api-url': 'https://zuul.example.com/',
  project: 'opendev/system-config',
  pipelines: ['periodic'],
  job: 'build-noble-image',
  artifacts: [{ format: 'qcow', type: 'image-qcow' }],
  keep: 2,
};

it('the manager uploads builds imported from Zuul, and keeps the configured number', async (t) => {
  const server = await startGearmand();
  undoAfter(t, () => server.stop());
  const providers = [provider('east', { images: [{ name: 'node', diskimage: 'noble' }] })];
  const site = await createManagedSite(t, { diskimages: [], providers }, server.port);
  // The builder does not use Zuul: the test writes the images.
  const builderConfig = join(site.directory, 'builder.yaml');
  await copyFile(site.config, builderConfig);
  endAfter(t, await startBuilder(builderConfig));
  await site.configure({ diskimages: [], 'zuul-images': [NOBLE], providers });
  const manager = spawnManager(t, site.config);
  const taken: string[] = [];
  const take = async (): Promise<string> => {
    const day = taken.length;
    const uuid = String(day).repeat(32);
    const id = importedImageId({ image: 'noble', uuid, endTime: Date.UTC(2026, 1, 1 + day) });
    taken.push(id);
    await writeFile(join(site.directory, id), `image ${day}`);
    await rename(join(site.directory, id), join(site.images, `${id}.qcow2`));
    await manager.logged(new RegExp(`upload \\S+ of ${id} to east is ready`));
    return id;
  };

  const first = await take();
  const [build, ...others] = await site.list('dib-image-list');
  assert.deepEqual(others, []);
  assert.deepEqual(
    [build?.['image-id'], build?.diskimage, build?.state, build?.requested, build?.reason],
    [first, 'noble', 'ready', '2026-02-01T00:00:00.000Z', 'Zuul built it'],
  );
  const plan = await site.list('plan');
  assert.deepEqual(
    plan.map(({ what, subject, reason }) => [what, subject, reason]),
    [
      [
        'wait',
        'diskimage noble',
        'no builder offers image-build:noble, so that none imports the builds of Zuul',
      ],
    ],
  );
  await take();
  await take();
  const kept = taken.slice(1).map((id) => `${id}.qcow2`);
  await manager.logged(new RegExp(`deleted build ${first}`));
  assert.deepEqual(await site.built(), kept);
  await waitUntil('two images in the provider', async () => (await site.uploaded('east')).length === 2);
  const status = await site.list('image-status');
  assert.deepEqual(
    status.map(({ provider: name, state, ready, newest }) => [name, state, ready, newest]),
    [
      [null, 'ready', 2, taken[2]],
      ['east', 'ready', 2, taken[2]],
    ],
  );
});
