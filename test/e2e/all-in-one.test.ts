import assert from 'node:assert/strict';
import { rm, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { spawnBuilder, startBuilder } from '../fixtures/builder-process.ts';
import { runInProcess } from '../fixtures/command-in-process.ts';
import { runCommand } from '../fixtures/command-outcome.ts';
import {
  createManagedSite,
  docsImage,
  endAfter,
  type ManagedSite,
  provider,
} from '../fixtures/managed-site.ts';
import { waitUntil } from '../fixtures/wait-until.ts';

/** Waits until both providers have this number of images, including those with the given ids. */
async function everywhere(site: ManagedSite, count: number, imageId = ''): Promise<void> {
  await waitUntil(`${count} images in both providers, ${imageId} among them`, async () => {
    const found = await Promise.all([site.uploaded('east'), site.uploaded('west')]);
    return found.every((files) => files.length === count && files.some((file) => file.includes(imageId)));
  });
}

describe('--all-in-one', () => {
  it('a builder with --all-in-one builds, uploads to every provider, and keeps the configured number of images', async (t) => {
    const site = await createManagedSite(t, { diskimages: [docsImage({ keep: 2 })] });
    const service = endAfter(t, await startBuilder(site.config, '--all-in-one'));
    await everywhere(site, 1);
    const { code, stdout, stderr } = await runInProcess('rebuild', 'docs', '-c', site.config);
    assert.deepEqual([code, stdout], [0, '']);
    assert.match(
      stderr,
      /^build docs-0000000004-\w+ is queued; a builder starts it as soon as it is free\n$/,
    );
    await everywhere(site, 2);
    await runInProcess('rebuild', 'docs', '-c', site.config);
    await service.logged(/deleted build docs-0000000001-\w+$/);
    await service.logged(/deleted upload 0000000003-\w+ of docs-0000000001-\w+ to west$/);
    await service.logged(/deleted upload 0000000002-\w+ of docs-0000000001-\w+ to east$/);

    const newest = (await site.list('dib-image-list')).filter(({ state }) => state === 'ready');
    assert.deepEqual(
      newest.map((build) => build['image-id']?.slice(0, 15)),
      ['docs-0000000004', 'docs-0000000007'],
    );
    const files = newest.map((build) => `docs-${build['image-id']}.qcow2`);
    assert.deepEqual([await site.uploaded('east'), await site.uploaded('west')], [files, files]);
    assert.deepEqual(
      await site.built(),
      newest.flatMap(({ 'image-id': id }) => [`${id}.qcow2`, `${id}.raw`]),
    );
    assert.equal(await service.end('SIGTERM'), 0);
  });

  it('a builder with --all-in-one records the ends of its running uploads before it stops', async (t) => {
    const site = await createManagedSite(t);
    const [gate, hook] = [join(site.directory, 'gate'), join(site.directory, 'hook')];
    await writeFile(gate, '');
    await writeFile(hook, `#!/bin/sh\nwhile [ -e '${gate}' ]; do sleep 0.1; done\n`, { mode: 0o755 });
    await site.configure({
      providers: ['east', 'west'].map((name) => provider(name, { 'post-upload-hook': hook })),
    });
    const service = endAfter(t, await startBuilder(site.config, '--all-in-one'));
    await waitUntil('two running uploads', async () => {
      const uploads = await site.list('image-list');
      return uploads.length === 2 && uploads.every(({ host }) => host === hostname());
    });
    const ended = service.end('SIGTERM');
    await service.logged(/finishing the running jobs/);
    await rm(gate);
    assert.equal(await ended, 0);
    const states = (await site.list('image-list')).map(({ state }) => state);
    assert.deepEqual(states, ['ready', 'ready']);
  });

  it('a builder with --all-in-one resumes after SIGKILL and builds nothing twice', async (t) => {
    const site = await createManagedSite(t);
    const first = endAfter(t, await startBuilder(site.config, '--all-in-one'));
    await everywhere(site, 1);
    await first.end('SIGKILL');
    const second = endAfter(t, await startBuilder(site.config, '--all-in-one'));
    await second.logged(/nodepool\.manager: elected leader; the ids of its images end in -/);
    const later = await waitUntil('nothing to do', async () => {
      const plan = await site.list('plan');
      return plan.every(({ when }) => when !== 'now') && plan;
    });
    assert.deepEqual(
      later.map(({ what, subject }) => [what, subject]),
      [['build', 'docs']],
    );
    assert.equal((await site.list('dib-image-list')).length, 1);
    assert.equal(await second.end('SIGTERM'), 0);
  });

  it('a builder with --all-in-one is rejected while another owns the same directory', async (t) => {
    const site = await createManagedSite(t);
    const first = endAfter(t, await startBuilder(site.config, '--all-in-one'));
    const other = await createManagedSite(t);
    await other.configure({ 'images-dir': site.images });
    const second = endAfter(t, spawnBuilder(other.config, '--all-in-one'));
    assert.equal(await second.ended, 4);
    assert.match(
      second.log.join('\n'),
      new RegExp(`is in use by process ${first.child.pid} on host .*; stop that process`),
    );
  });

  it('a builder with --all-in-one exits with the reason if its store cannot be used', async (t) => {
    const site = await createManagedSite(t, { manager: { store: 'nodepool.yaml' } });
    const { code, stderr } = await runCommand('-d', '--all-in-one', '-c', site.config);
    assert.equal(code, 1);
    assert.match(
      stderr,
      /^nodepool-builder: the store ".*nodepool\.yaml" cannot be used: .*; it is not a SQLite database; name another file$/m,
    );
  });
});
