import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checksumsOf } from '@nodepool-builder/image-builder/internal';
import type { SoakCloud } from '../soak/soak-cloud.ts';

/** A directory. No request fails, but kills leave partial files. */
export async function directoryCloud(): Promise<SoakCloud> {
  const directory = await mkdtemp(join(tmpdir(), 'nodepool-soak-directory-'));
  const entries = (): Promise<string[]> => readdir(directory);
  return {
    // Slow enough for kills in between.
    entry: { name: 'directory', type: 'directory', directory, 'image-type': 'raw', 'bandwidth-limit': 8e6 },
    images: async () => {
      const names = (await entries()).filter((name) => name.endsWith('.raw.json') && !name.startsWith('.'));
      return await Promise.all(
        names.map(async (name) => {
          const manifest = JSON.parse(await readFile(join(directory, name), 'utf8')) as {
            'image-id': string;
          };
          const externalId = name.slice(0, -'.json'.length);
          return {
            externalId,
            imageId: manifest['image-id'],
            isSame: async ({ md5 }) => (await checksumsOf(join(directory, externalId))).md5 === md5,
          };
        }),
      );
    },
    orphans: async () => (await entries()).filter((name) => name.startsWith('.')),
    close: () => rm(directory, { recursive: true, force: true }),
  };
}
