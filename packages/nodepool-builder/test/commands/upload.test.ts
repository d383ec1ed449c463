// Not a unit test: it starts qemu-img.
import assert from 'node:assert/strict';
import { mkdir, readdir, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { it } from 'node:test';
import { ImageError, type ImageProvider } from '@nodepool-builder/image-builder';
import { runInProcess } from '../../../../test/fixtures/command-in-process.ts';
import { temporaryDirectory } from '../../../../test/fixtures/scratch-directory.ts';
import { attestImage, writeKeys } from '../../../../test/fixtures/site-key.ts';
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
  const run = async (maxDiskSize: number): Promise<unknown> =>
    await uploadFile(
      provider,
      { ...upload, directory, maxDiskSize, withProgress: withoutProgress },
      t.signal,
    );
  await assert.rejects(
    run(2 ** 20),
    (error) => error instanceof ImageError && error.code === 'image-too-large',
  );
  await run(2 ** 21);
});

it('a file without the attestations that the configuration requires is rejected and not uploaded', async (t) => {
  const directory = temporaryDirectory(t);
  const { key } = await writeKeys(directory);
  const file = join(directory, '1.raw');
  await writeFile(file, 'an image');
  await mkdir(join(directory, 'shelf'));
  const provider = {
    name: 'shelf',
    type: 'directory',
    directory: 'shelf',
    'image-type': 'raw',
    images: [{ name: 'debian' }],
    'require-attestation': { 'trusted-keys': ['attestation.pub'] },
  };
  const config = join(directory, 'nodepool.yaml');
  await writeFile(config, JSON.stringify({ 'images-dir': '.', providers: [provider] }));
  const args = ['upload', file, '--provider', 'shelf', '--name', 'debian', '-c', config];
  const refused = await runInProcess(...args);
  assert.notEqual(refused.code, 0);
  assert.match(refused.stderr, /1\.raw to shelf is refused by require-attestation: trusted-keys: /);
  assert.deepEqual(await readdir(join(directory, 'shelf')), []);
  await attestImage(directory, '1', key);
  const { code, stderr } = await runInProcess(...args);
  assert.deepEqual([code, stderr], [0, '']);
});
