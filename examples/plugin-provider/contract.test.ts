import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { foreignTo, imageProviderContract } from '@nodepool-builder/image-builder/testing';
import folderProvider from './folder-provider.ts';

imageProviderContract('The provider folder', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'folder-'));
  t.after(() => rm(folder, { recursive: true }));
  const logger = { debug() {}, info() {}, warn() {}, error() {} };
  const open = (name: string) =>
    folderProvider.images.open({ name, folder, images: [] }, { formats: ['qcow2', 'raw'], logger });
  return { provider: open('folder'), foreign: foreignTo(open('other')) };
});
