import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Account, cloudsYaml } from '../fixtures/openstack/account.ts';
import { openStack } from '../fixtures/openstack/openstack.ts';
import type { SoakCloud } from './soak-cloud.ts';

/** Projects of a real Glance, each as a separate cloud. */
export async function openStackClouds(count: number): Promise<readonly SoakCloud[]> {
  const openstack = await openStack();
  const accounts = await Promise.all(Array.from({ length: count }, () => openstack.createAccount()));
  const directory = await mkdtemp(join(tmpdir(), 'nodepool-soak-clouds-'));
  const file = join(directory, 'clouds.yaml');
  const named = accounts.map((account, index) => [`cloud-${index + 1}`, account] as const);
  await writeFile(file, cloudsYaml(Object.fromEntries(named.map(([name, each]) => [name, each.cloud()]))));
  return named.map(([name, account], index) => ({
    ...openStackCloud(name, account, file),
    ...(index === 0 && { close: () => rm(directory, { recursive: true, force: true }) }),
  }));
}

function openStackCloud(name: string, account: Account, clouds: string): SoakCloud {
  return {
    // The rate is far higher than in public clouds, and slow enough for kills in between.
    entry: { name, cloud: name, 'image-type': 'raw', rate: 0.05, 'max-servers': 0 },
    environment: { OS_CLIENT_CONFIG_FILE: clouds },
    images: async () =>
      (await account.images()).map((image) => ({
        externalId: image.id,
        imageId: String(image.nodepool_build_id),
        flaw: image.status === 'active' ? undefined : image.status,
        isSame: ({ md5 }) => image.checksum === md5,
      })),
  };
}
