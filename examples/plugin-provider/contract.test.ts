import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { foreignTo, imageProviderContract } from '@nodepool-builder/image-builder/testing';
import { FolderProvider } from './folder-provider.ts';

imageProviderContract('The provider folder', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'folder-'));
  t.after(() => rm(folder, { recursive: true }));
  const open = (name: string) => new FolderProvider({ entry: { name, folder }, formats: ['qcow2', 'raw'] });
  return { provider: open('folder'), foreign: foreignTo(open('other')) };
});
