// Not a unit test: it takes seconds.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { imageProviderContract } from '@nodepool-builder/image-builder/testing';
import { DirectoryProvider } from '../../src/directory/directory-provider.ts';

imageProviderContract('DirectoryProvider', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'directory-provider-'));
  t.after(() => rm(directory, { recursive: true }));
  const foreign = async (): Promise<string> => {
    await writeFile(join(directory, 'theirs.raw'), 'theirs');
    return 'theirs.raw';
  };
  const formats = ['qcow2', 'raw', 'squashfs'] as const;
  return { provider: new DirectoryProvider({ name: 'pool', directory, formats }), foreign };
});
