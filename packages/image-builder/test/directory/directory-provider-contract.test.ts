// Not a unit test: it takes seconds.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { imageProviderContract } from '@nodepool-builder/image-builder/testing';
import { DirectoryProvider } from '../../src/directory/directory-provider.ts';

imageProviderContract('DirectoryProvider', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'directory-provider-'));
  t.after(() => rm(directory, { recursive: true }));
  return new DirectoryProvider({ name: 'pool', directory, formats: ['qcow2', 'raw', 'squashfs'] });
});
