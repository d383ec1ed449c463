import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { RepositoryFixture } from '../../../test/fixtures/repository-fixture.ts';
import { withCode } from '../../../test/fixtures/with-code.ts';
import type { Progress } from '../src/index.ts';
import { readManifest } from '../src/manifest.ts';
import { Layout } from '../src/repository/layout.ts';
import { imageBuilderContract } from '../src/testing/image-builder-contract.ts';
import { makeImage, ScriptedBuilder } from './scripted-builder.ts';

imageBuilderContract(
  'a builder in a few lines',
  ({ name, formats }) => new ScriptedBuilder(makeImage, { name, formats }),
  ['raw', 'tar'],
);

test('a built image is offered with its checksums, and described by its manifest', async (t) => {
  const { repository } = await RepositoryFixture.open(t);
  const before = Date.now();
  const image = await new ScriptedBuilder(makeImage).build({ imageId: 'debian-1', repository });
  assert.deepEqual(image.files, [
    {
      format: 'raw',
      path: join(repository.directory, 'debian-1.raw'),
      size: 7,
      checksums: {
        md5: '9a0364b9e99bb480dd25e1f0284c8555',
        sha256: 'ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73',
      },
    },
  ]);
  const manifest = await readManifest(new Layout(repository.directory).manifest('debian-1'), 'debian-1');
  assert.equal(manifest?.builder, 'ScriptedBuilder');
  const [started = '', finished = ''] = [manifest.started, manifest.finished];
  assert.ok(before <= Date.parse(started) && started <= finished && Date.parse(finished) <= Date.now());
  assert.deepEqual(image.builtAt, new Date(finished));
});

test('an image’s file names do not exist before the image is complete', async (t) => {
  const fixture = await RepositoryFixture.open(t);
  const seen: string[][] = [];
  const builder = new ScriptedBuilder(async (context) => {
    await makeImage(context);
    seen.push(await readdir(fixture.directory));
  });
  await builder.build({ imageId: 'debian-1', repository: fixture.repository });
  assert.deepEqual(seen, [['.nodepool-builder']]);
  assert.deepEqual(fixture.events, ['added debian-1']);
});

test('a build log in a chosen directory has the commands, their output and the builder’s lines', async (t) => {
  const { repository, outside } = await RepositoryFixture.open(t);
  const builder = new ScriptedBuilder(async (context) => {
    context.log('a word of the builder');
    await context.run('sh', ['-c', 'echo out; echo err >&2']);
    await makeImage(context);
  });
  const lines: string[] = [];
  await builder.build({
    imageId: 'debian-1',
    repository,
    logDirectory: join(outside, 'logs'),
    onLine: (line) => lines.push(line),
  });
  const log = await readFile(join(outside, 'logs', 'debian-1.log'), 'utf8');
  assert.match(
    log,
    /^# image-name: "debian"\n# image-id: debian-1\na word of the builder\n\$ sh -c .*\nout\nerr\n/,
  );
  assert.deepEqual(log.trimEnd().split('\n').slice(2), lines);
});

test('a build log is in the repository by default', async (t) => {
  const { repository } = await RepositoryFixture.open(t);
  await new ScriptedBuilder(makeImage).build({ imageId: 'debian-1', repository });
  assert.deepEqual(await readdir(repository.logDirectory), ['debian-1.log']);
});

test('a build’s progress is the builder’s, scaled, and then that of the checksums', async (t) => {
  const { repository } = await RepositoryFixture.open(t);
  const builder = new ScriptedBuilder(async (context) => {
    context.progress(1, 2);
    await makeImage(context);
  });
  const seen: Progress[] = [];
  await builder.build({ imageId: 'debian-1', repository, onProgress: (progress) => seen.push(progress) });
  assert.deepEqual(seen[0], { done: 45, total: 100 });
  assert.deepEqual(seen.at(-1), { done: 100, total: 100 });
});

test('concurrent calls share one build, and a repeated job finds its image', async (t) => {
  const fixture = await RepositoryFixture.open(t);
  const { repository } = fixture;
  let runs = 0;
  const builder = new ScriptedBuilder(async (context) => {
    runs += 1;
    context.progress(1, 2);
    await makeImage(context);
  });
  const job = { imageId: 'debian-1', repository };
  const seen: [number[], number[]] = [[], []];
  const [one, other] = await Promise.all(
    seen.map((told) => builder.build({ ...job, onProgress: ({ done }) => told.push(done) })),
  );
  assert.equal(one, other);
  assert.equal(await builder.build(job), one);
  assert.equal(runs, 1);
  assert.deepEqual(seen, [
    [45, 100],
    [45, 100],
  ]);
  assert.deepEqual(fixture.events, ['added debian-1']);
});

test('aborting one of two calls does not end the shared build', async (t) => {
  const { repository } = await RepositoryFixture.open(t);
  const abort = new AbortController();
  const builder = new ScriptedBuilder(async (context) => {
    abort.abort();
    await makeImage(context);
  });
  const leaves = builder.build({ imageId: 'debian-1', repository, signal: abort.signal });
  const stays = builder.build({ imageId: 'debian-1', repository });
  await assert.rejects(leaves, withCode('build-aborted'));
  assert.equal((await stays).id, 'debian-1');
});

test('a build with another image’s id or an invalid id is rejected', async (t) => {
  const { repository } = await RepositoryFixture.open(t);
  await new ScriptedBuilder(makeImage).build({ imageId: 'debian-1', repository });
  const fedora = new ScriptedBuilder(makeImage, { name: 'fedora' });
  await assert.rejects(fedora.build({ imageId: 'debian-1', repository }), withCode('image-exists'));
  await assert.rejects(fedora.build({ imageId: 'a/b', repository }), withCode('invalid-image-id'));
  assert.equal(repository.get('debian-1')?.name, 'debian');
});

test('a build in unavailable formats is rejected before it begins', async (t) => {
  class RawBuilder extends ScriptedBuilder {
    override readonly nativeFormats = ['raw'] as const;
  }
  const { repository } = await RepositoryFixture.open(t);
  const builder = new RawBuilder(() => assert.fail('it began'), { formats: ['tar'] });
  await assert.rejects(builder.build({ imageId: 'debian-1', repository }), withCode('format-unavailable'));
  assert.deepEqual(await readdir(repository.directory), ['.nodepool-builder']);
});

test('a time limit beyond the range of timers does not end the build at once', async (t) => {
  const { repository } = await RepositoryFixture.open(t);
  const builder = new ScriptedBuilder(
    async (context) => {
      await delay(20); // Node shortens a timer that is too long to a millisecond
      await makeImage(context);
    },
    { buildTimeout: 1e9 },
  );
  await builder.build({ imageId: 'debian-1', repository });
});
