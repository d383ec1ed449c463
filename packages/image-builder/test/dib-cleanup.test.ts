// Only in test:all: it waits for many builds.
import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { RepositoryFixture } from '../../../test/fixtures/repository-fixture.ts';
import { processesWith } from '../../../test/fixtures/running-process.ts';
import { waitUntil } from '../../../test/fixtures/wait-until.ts';
import { withCode } from '../../../test/fixtures/with-code.ts';
import { mountsBelow } from '../src/cleanup/mounts.ts';
import { DibBuilder } from '../src/index.ts';
import { assertNoOrphans, mountsOfBuilds, orphansBelow } from './host-orphans.ts';
import { MINI_OS } from './mini-os.ts';

test('the elements’ downloads outlive the build, outside the image', async (t) => {
  const fixture = await RepositoryFixture.open(t);
  const { repository } = fixture;
  const cache = join(fixture.directory, '.nodepool-builder', 'cache', 'mini');
  const seen: string[] = [];
  for (const imageId of ['mini-1', 'mini-2']) {
    const builder = new DibBuilder(MINI_OS, { elements: ['mini-os', 'mini-download'] });
    await builder.build({
      imageId,
      repository,
      cacheLimit: 2 ** 30,
      onLine: (line) => seen.push(...(/mini-download: (.*)/.exec(line)?.slice(1) ?? [])),
    });
    assert.deepEqual(await readdir(cache), ['download']);
    const raw = await readFile(fixture.path(`${imageId}.raw`), 'latin1');
    assert.ok(!raw.includes('downloaded by mini-download'));
  }
  assert.deepEqual(seen, ['fetched', 'found']);
  await assertNoOrphans(fixture.directory);
});

test('a disk image’s DIB_IMAGE_CACHE is used in place of ours', async (t) => {
  const fixture = await RepositoryFixture.open(t);
  const { repository, outside } = fixture;
  const envVars = { ...MINI_OS.envVars, DIB_IMAGE_CACHE: outside };
  await new DibBuilder({ ...MINI_OS, envVars }, { elements: ['mini-os', 'mini-download'] }).build({
    imageId: 'mini-1',
    repository,
    cacheLimit: 2 ** 30,
  });
  assert.deepEqual(await readdir(outside), ['download']);
  assert.ok(!(await readdir(join(fixture.directory, '.nodepool-builder'))).includes('cache'));
});

for (const [name, place] of [
  ['TMPDIR', 'env-vars'],
  ['TMPDIR', 'the environment'],
  ['TMP_DIR', 'env-vars'],
] as const) {
  test(`an aborted build with ${name} in ${place} leaves no file, process, mount or loop device there`, async (t) => {
    const fixture = await RepositoryFixture.open(t);
    const { repository, outside } = fixture;
    const waiting = Promise.withResolvers<void>();
    const abort = new AbortController();
    const seen: number[] = [];
    const variables = { [name]: outside };
    const envVars = {
      ...MINI_OS.envVars,
      MINI_HANG_PHASE: 'finalise.d',
      ...(place === 'env-vars' && variables),
    };
    const build = new DibBuilder({ ...MINI_OS, envVars }, { elements: 'mini-hang' }).build({
      imageId: 'mini-1',
      repository,
      environment: { ...process.env, ...(place === 'the environment' && variables) },
      signal: abort.signal,
      onProgress: ({ done }) => seen.push(done),
      onLine: (line) => {
        if (line.includes('mini-hang: waiting in finalise.d')) waiting.resolve();
      },
    });
    await Promise.race([waiting.promise, build]);
    assert.ok((await mountsOfBuilds(fixture.directory, outside)).some((path) => path.endsWith('/dev')));
    const { mounts, loops } = await orphansBelow(outside);
    assert.deepEqual(mounts, [], 'the host does not see its mounts');
    assert.equal(loops.length, 1);
    assert.ok(seen.length > 1, 'the hooks make the progress');
    abort.abort();
    await assert.rejects(build, withCode('build-aborted'));
    for (const directory of [fixture.directory, outside]) await assertNoOrphans(directory);
    assert.deepEqual(await readdir(outside), []);
    assert.deepEqual(await readdir(fixture.directory), ['.nodepool-builder']);
  });
}

test('the end of a build ends a process with another session, environment and directory, and undoes a mount elsewhere', async (t) => {
  const fixture = await RepositoryFixture.open(t);
  const seconds = `600.${process.pid}`;
  const variables = { MINI_ESCAPE_MOUNT: fixture.outside, MINI_ESCAPE_SECONDS: seconds };
  let escaped: Promise<number[]> | undefined;
  const builder = new DibBuilder(
    { ...MINI_OS, envVars: { ...MINI_OS.envVars, ...variables } },
    { elements: 'mini-escape' },
  );
  await builder.build({
    imageId: 'mini-1',
    repository: fixture.repository,
    onLine: (line) => {
      if (line.includes('Running') && line.includes('/install.d/')) escaped ??= waitForProcesses(seconds);
    },
  });
  assert.equal((await escaped)?.length, 1);
  assert.deepEqual(await processesWith(seconds), []);
  assert.deepEqual(await mountsBelow([fixture.outside]), []);
  await assertNoOrphans(fixture.directory);
});

/** Waits for processes with this argument. */
async function waitForProcesses(word: string): Promise<number[]> {
  return await waitUntil(`a process with ${word}`, async () => {
    const found = await processesWith(word);
    return found.length > 0 && found;
  });
}
