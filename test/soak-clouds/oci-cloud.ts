import { createHash } from 'node:crypto';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { zstdDecompressSync } from 'node:zlib';
import { IMAGE_TAGS } from '@nodepool-builder/image-builder/plugin';
import { removeRegistry, startRegistry } from '../../packages/provider-oci/test/docker-registry.ts';
import type { SoakCloud } from '../soak/soak-cloud.ts';
import { startFaultyService } from './faulty-service.ts';

/** A repository in Debian's docker-registry. */
export async function ociCloud(faultRate: number): Promise<SoakCloud> {
  const directory = await mkdtemp(join(tmpdir(), 'nodepool-soak-oci-'));
  const registry = await startRegistry(directory, 'none');
  const authFile = join(directory, 'auth.json');
  await writeFile(authFile, '{"auths": {}}'); // not the user’s
  const service = await startFaultyService(`http://${registry.host}`, faultRate);
  const repository = `${registry.host}/ci/images`;
  const ask = async (path: string): Promise<Response> => {
    const response = await fetch(`http://${registry.host}/v2/ci/images/${path}`, {
      headers: { accept: 'application/vnd.oci.image.manifest.v1+json' },
    });
    if (!response.ok && response.status !== 404)
      throw new Error(`the registry responds with ${response.status}`);
    return response;
  };
  return {
    entry: {
      name: 'oci',
      type: 'oci',
      repository,
      endpoint: service.proxy.url,
      'auth-file': authFile,
      'image-type': 'raw',
    },
    images: async () => {
      const { tags } = (await (await ask('tags/list')).json()) as { tags?: readonly string[] | null };
      return await Promise.all(
        (tags ?? [])
          .filter((tag) => !tag.endsWith('-latest'))
          .map(async (tag) => {
            const manifest = (await (await ask(`manifests/${tag}`)).json()) as Manifest;
            return {
              externalId: `${repository}:${tag}`,
              imageId: manifest.annotations[IMAGE_TAGS.imageId] ?? '',
              isSame: async ({ md5 }) => {
                const layer = await (await ask(`blobs/${manifest.layers[0]?.digest}`)).arrayBuffer();
                const bytes = zstdDecompressSync(Buffer.from(layer));
                return createHash('md5').update(bytes).digest('hex') === md5;
              },
            };
          }),
      );
    },
    traffic: () => ({ requests: service.proxy.requests.length, faults: service.faults }),
    close: async () => {
      await service.proxy.close();
      await removeRegistry(registry, directory);
    },
  };
}

interface Manifest {
  readonly annotations: Readonly<Record<string, string>>;
  readonly layers: readonly { readonly digest: string }[];
}
