import assert from 'node:assert/strict';
import { truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { CapturedImage, SaveOptions } from '@nodepool-builder/image-builder';
import type { FullBuildContext } from '@nodepool-builder/image-builder/internal';
import { temporaryDirectory } from '../../../test/fixtures/temporary-directory.ts';
import { withCode } from '../../../test/fixtures/with-code.ts';
import { saveImage } from '../src/build-on-instance.ts';

test('the limit on a disk’s size applies to a capture and its conversions', async (t) => {
  const directory = await temporaryDirectory(t);
  const saves: (number | undefined)[] = [];
  const captured: CapturedImage = {
    formats: ['raw'],
    save: async (_format, path, { maxDiskSize }: SaveOptions = {}) => {
      saves.push(maxDiskSize);
      await writeFile(path, 'disk');
      await truncate(path, 2 ** 21);
    },
  };
  const context = {
    formats: ['qcow2'],
    imageId: 'mini-1',
    directory,
    outputPath: () => join(directory, 'image.qcow2'),
    signal: t.signal,
  } as Partial<FullBuildContext> as FullBuildContext;
  const save = (maxDiskSize: number): Promise<void> => saveImage(captured, { ...context, maxDiskSize });
  await assert.rejects(save(2 ** 20), withCode('image-too-large'));
  await save(2 ** 21);
  assert.deepEqual(saves, [2 ** 20, 2 ** 21]);
});
