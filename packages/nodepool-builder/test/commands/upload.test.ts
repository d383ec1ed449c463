// Not a unit test: it starts qemu-img.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
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
  const path = join(directory, 'image.qcow2');
  execFileSync('qemu-img', ['create', '-q', '-f', 'qcow2', path, '2T']);
  const provider = {
    name: 'ci',
    formats: ['raw'],
    list: () => Promise.resolve([]),
    upload: () => Promise.resolve({ externalId: 'there' }),
  } as Partial<ImageProvider> as ImageProvider;
  const upload = { path, format: 'qcow2', name: 'debian', metadata: {}, dryRun: false } as const;
  await assert.rejects(
    uploadFile(provider, { ...upload, directory, withProgress: withoutProgress }, t.signal),
    (error) => error instanceof ImageError && error.code === 'image-too-large',
  );
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
