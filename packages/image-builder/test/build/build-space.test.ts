// Not a unit test: mounts small file systems, and builds images there.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { mountTmpfs } from '../../../../test/fixtures/temporary-directory.ts';
import { withCode } from '../../../../test/fixtures/with-code.ts';
import type { FullBuildContext } from '../../src/context.ts';
import { ImageRepository, type Progress } from '../../src/index.ts';
import { readManifest } from '../../src/manifest.ts';
import { Layout } from '../../src/repository/layout.ts';
import { makeImage, ScriptedBuilder } from '../scripted-builder.ts';

const MEBIBYTE = 2 ** 20;

/** Creates a repository on a file system of 32 MiB. */
async function setUp(t: TestContext): Promise<ImageRepository> {
  const directory = await mountTmpfs(t, 'size=32m', () => repository.close());
  const repository = await ImageRepository.open(directory);
  return repository;
}

/** Starts a build that stops halfway. */
class PausedBuild {
  readonly #running = Promise.withResolvers<void>();
  readonly #finish = Promise.withResolvers<void>();
  readonly done: Promise<unknown>;

  constructor(repository: ImageRepository, imageId: string, diskSpace: number) {
    const script = async (context: FullBuildContext): Promise<void> => {
      await context.reserveSpace(await context.stateDirectory(), diskSpace);
      this.#running.resolve();
      await this.#finish.promise;
      await makeImage(context);
    };
    this.done = new ScriptedBuilder(script).build({ imageId, repository });
  }

  get running(): Promise<void> {
    return this.#running.promise;
  }

  async finish(): Promise<void> {
    this.#finish.resolve();
    await this.done;
  }
}

/** Builder that creates an image once 20 MiB are free. */
async function makeLater(context: FullBuildContext): Promise<void> {
  await context.reserveSpace(await context.stateDirectory(), 20 * MEBIBYTE);
  await makeImage(context);
}

/** Collects progress reports until the operation waits. */
function waitsFor(): {
  readonly seen: Progress[];
  onProgress: (one: Progress) => void;
  waits: Promise<string>;
} {
  const seen: Progress[] = [];
  const { promise: waits, resolve } = Promise.withResolvers<string>();
  const onProgress = (progress: Progress): void => {
    seen.push(progress);
    if (progress.waiting !== undefined) resolve(progress.waiting);
  };
  return { seen, onProgress, waits };
}

test('a build waits for another build’s disk space, reports it, and then runs', async (t) => {
  const repository = await setUp(t);
  const first = new PausedBuild(repository, 'first', 20 * MEBIBYTE);
  await first.running;
  const { seen, onProgress, waits } = waitsFor();
  const lines: string[] = [];
  const builder = new ScriptedBuilder(makeLater, { name: 'other', buildTimeout: 60 });
  const second = builder.build({
    imageId: 'second',
    repository,
    onProgress,
    onLine: (line) => lines.push(line),
  });
  assert.equal(await waits, 'disk space, held by build of image first');
  await first.finish();
  await second;
  assert.ok(lines.includes('# waiting for disk space, held by build of image first'));
  const log = await readFile(join(repository.logDirectory, 'second.log'), 'utf8');
  assert.match(log, /^# waiting for disk space/m);
  assert.equal(seen.findLast(({ done }) => done === 0)?.waiting, undefined, 'it no longer waits');
  assert.equal(seen.at(-1)?.done, 100);
});

test('a build that waits for disk space can be cancelled', async (t) => {
  const repository = await setUp(t);
  const first = new PausedBuild(repository, 'first', 20 * MEBIBYTE);
  await first.running;
  const { onProgress, waits } = waitsFor();
  const controller = new AbortController();
  const second = new ScriptedBuilder(makeLater, { name: 'other' }).build({
    imageId: 'second',
    repository,
    onProgress,
    signal: controller.signal,
  });
  await waits;
  controller.abort(new Error('cancelled'));
  await assert.rejects(second, withCode('build-aborted'));
  await first.finish();
});

test('a conversion waits for a build’s disk space', async (t) => {
  const repository = await setUp(t);
  const fill = async ({ outputPath }: FullBuildContext): Promise<void> =>
    writeFile(outputPath('raw'), Buffer.alloc(8 * MEBIBYTE, 'x'));
  await new ScriptedBuilder(fill).build({ imageId: 'image', repository });
  const build = new PausedBuild(repository, 'first', 20 * MEBIBYTE);
  await build.running;
  const { onProgress, waits } = waitsFor();
  const converted = once(repository, 'converted');
  const file = repository.file('image', ['qcow2'], { onProgress });
  assert.equal(await waits, 'disk space, held by build of image first');
  await build.finish();
  assert.equal((await file).format, 'qcow2');
  await converted;
});

test('a build that can never have its disk space fails at once, with the reason in its log', async (t) => {
  const repository = await setUp(t);
  const builder = new ScriptedBuilder(async (context) =>
    context.reserveSpace(await context.stateDirectory(), 2 ** 30),
  );
  const message =
    /needs 1\.0 GiB of disk space \(for its next step\), but at most 3\d\.\d MiB can become free in ".*"; free space there, or lower/;
  await assert.rejects(builder.build({ imageId: 'image', repository }), withCode('disk-full', message));
  assert.match(await readFile(join(repository.logDirectory, 'image.log'), 'utf8'), message);
});

test('a build reserves as much disk space as the image’s last build took', async (t) => {
  const repository = await setUp(t);
  const fill = async ({ outputPath }: FullBuildContext): Promise<void> =>
    writeFile(outputPath('raw'), Buffer.alloc(12 * MEBIBYTE, 'x'));
  await new ScriptedBuilder(fill).build({ imageId: 'first', repository });
  const { 'disk-space': space = 0 } =
    (await readManifest(new Layout(repository.directory).manifest('first'), 'first')) ?? {};
  assert.ok(space >= 12 * MEBIBYTE && space < 13 * MEBIBYTE, `${space} bytes`);
  const other = new PausedBuild(repository, 'other', 12 * MEBIBYTE);
  await other.running;
  const { onProgress, waits } = waitsFor();
  const second = new ScriptedBuilder(makeImage).build({ imageId: 'second', repository, onProgress });
  await waits;
  await other.finish();
  await second;
});
