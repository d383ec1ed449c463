// Not a unit test: it starts qemu-img.
import assert from 'node:assert/strict';
import { truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { it } from 'node:test';
import { ImageError, type ImageProvider } from '@nodepool-builder/image-builder';
import { temporaryDirectory } from '../../../../test/fixtures/scratch-directory.ts';
import { withoutProgress } from '../../src/commands/progress.ts';
import { uploadFile } from '../../src/commands/upload.ts';

it('a file is not converted if its disk exceeds the size limit', async (t) => {
  const directory = temporaryDirectory(t);
  const path = join(directory, 'image.raw');
  await writeFile(path, 'disk');
  await truncate(path, 2 ** 21);
  const provider = {
    name: 'ci',
    formats: ['qcow2'],
    list: () => Promise.resolve([]),
    upload: () => Promise.resolve({ externalId: 'there' }),
  } as Partial<ImageProvider> as ImageProvider;
  const upload = { path, format: 'raw', name: 'debian', metadata: {}, dryRun: false } as const;
  const run = async (largestDisk: number): Promise<unknown> =>
    await uploadFile(
      provider,
      { ...upload, directory, largestDisk, withProgress: withoutProgress },
      t.signal,
    );
  await assert.rejects(
    run(2 ** 20),
    (error) => error instanceof ImageError && error.code === 'image-too-large',
  );
  await run(2 ** 21);
});
