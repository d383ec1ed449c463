import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import type { BaseImageBuilder } from '../base.ts';
import type { DiskImage } from '../disk-image.ts';
import type { ImageError } from '../errors.ts';
import type { ImageFormat } from '../formats.ts';
import { ImageRepository } from '../repository.ts';
import type { Progress } from '../types.ts';

/**
 * Registers the tests that every builder passes.
 *
 * @param name name of the test suite
 * @param create creates the builder of a disk image with a name and formats
 * @param formats requested formats
 */
export function imageBuilderContract(
  name: string,
  create: (diskimage: DiskImage) => BaseImageBuilder,
  formats: readonly ImageFormat[],
): void {
  const diskimage: DiskImage = { name: 'contract', formats };

  describe(`${name} as a builder`, () => {
    test('a build makes all the builder’s formats, and a second call does not build again', async (t) => {
      const repository = await openRepository(t);
      const builder = create(diskimage);
      const seen: Progress[] = [];
      const lines: string[] = [];
      const image = await builder.build({
        imageId: 'contract-1',
        repository,
        onProgress: (progress) => seen.push(progress),
        onLine: (line) => lines.push(line),
      });
      assert.equal(image.name, 'contract');
      for (const file of image.files) assert.ok(file.checksums, `${file.format} has no checksums`);
      for (const format of formats) await repository.file('contract-1', [format]);
      assert.equal(seen.at(-1)?.done, 100);
      assert.deepEqual(
        seen,
        seen.toSorted((one, other) => one.done - other.done),
      );
      const before = lines.length;
      const again = await builder.build({
        imageId: 'contract-1',
        repository,
        onLine: (line) => lines.push(line),
      });
      assert.equal(again, repository.get('contract-1'));
      assert.equal(lines.length, before);
      assert.deepEqual(await staged(repository), []);
    });

    test('an aborted build leaves nothing', async (t) => {
      const repository = await openRepository(t);
      const abort = new AbortController();
      const build = create(diskimage).build({
        imageId: 'contract-1',
        repository,
        signal: abort.signal,
        onLine: () => abort.abort(),
      });
      await assert.rejects(build, (error: ImageError) => error.code === 'build-aborted');
      assert.equal(repository.images.size, 0);
      assert.deepEqual(await staged(repository), []);
    });

    test('a build with an invalid image id is rejected', async (t) => {
      const repository = await openRepository(t);
      const build = create(diskimage).build({ imageId: '../contract-1', repository });
      await assert.rejects(build, (error: ImageError) => error.code === 'invalid-image-id');
    });
  });
}

async function openRepository(t: TestContext): Promise<ImageRepository> {
  const directory = await mkdtemp(join(tmpdir(), 'images-'));
  const repository = await ImageRepository.open(directory);
  t.after(async () => {
    await repository.close();
    await rm(directory, { recursive: true });
  });
  return repository;
}

function staged(repository: ImageRepository): Promise<string[]> {
  return readdir(join(repository.directory, '.nodepool-builder', 'staging'));
}
