import type { ProviderImage } from '@nodepool-builder/image-builder';
import type { Build, ManagerConfiguration, StateStore, Upload } from '@nodepool-builder/image-manager';

const DISKIMAGES = 10_000;
const BUILDS_OF_EACH = 2;
const PROVIDERS = 5;

/** Numbers of recorded builds and uploads. */
export const BUILDS: number = DISKIMAGES * BUILDS_OF_EACH;
export const UPLOADS: number = BUILDS * PROVIDERS;

const NAMES = Array.from({ length: DISKIMAGES }, (_, index) => `debian-${index}`);

/** Disk images that are not due, and are uploaded to all providers. */
export const CONFIGURATION: ManagerConfiguration = {
  diskimages: NAMES.map((name) => ({
    name,
    // As long as in a real record.
    digest: name.padEnd(64, '0'),
    pause: false,
    rebuildAge: 86_400,
    keep: BUILDS_OF_EACH,
    buildTimeout: 28_800,
  })),
  providers: Array.from({ length: PROVIDERS }, (_, index) => ({
    name: `cloud-${index}`,
    pause: false,
    uploadTimeout: 3600,
    images: NAMES.map((name) => ({ name, diskimage: name, pause: false })),
  })),
  timing: { retryDelay: 60, maxRetryDelay: 3600, orphanScanInterval: 600, absenceTimeout: 1800 },
};

/** Yields records of a site in its wanted state, build by build. */
export function* records(
  owner: string,
): Iterable<{ readonly build: Build; readonly uploads: readonly Upload[] }> {
  const now = Date.now();
  let number = 1;
  for (let generation = 0; generation < BUILDS_OF_EACH; generation += 1) {
    for (const { name, digest } of CONFIGURATION.diskimages) {
      const requestedAt = now - (BUILDS_OF_EACH - generation) * 3_600_000;
      const build: Build = {
        id: `${name}-${idOf(number, owner)}`,
        diskimage: name,
        state: 'ready',
        configuration: digest,
        reason: 'the newest is 24 hours old; rebuild-age is 24 hours',
        requestedAt,
        endedAt: requestedAt + 60_000,
        withdrawn: false,
      };
      const uploads = CONFIGURATION.providers.map(({ name: provider }, index): Upload => {
        const id = idOf(number + 1 + index, owner);
        return {
          id,
          imageId: build.id,
          diskimage: name,
          provider,
          imageName: name,
          state: 'ready',
          externalId: externalIdOf(id),
          reason: `${build.id} is the newest build, and it is not there`,
          requestedAt: requestedAt + 60_000,
          endedAt: requestedAt + 120_000,
          leftovers: false,
          seen: true,
        };
      });
      yield { build, uploads };
      number += 1 + PROVIDERS;
    }
  }
}

/** Returns the images that a provider lists, one for each recorded upload. */
export function listedImages(provider: string, owner: string): ProviderImage[] {
  const first = 2 + CONFIGURATION.providers.findIndex(({ name }) => name === provider);
  return Array.from({ length: BUILDS }, (_, index) => {
    const uploadId = idOf(first + index * (1 + PROVIDERS), owner);
    const imageName = NAMES[index % DISKIMAGES] ?? '';
    const imageId = `${imageName}-${idOf(1 + index * (1 + PROVIDERS), owner)}`;
    const externalId = externalIdOf(uploadId);
    return { externalId, uploadId, imageId, imageName, format: 'qcow2', size: 1e9, uploadedAt: new Date(0) };
  });
}

function idOf(number: number, owner: string): string {
  return `${String(number).padStart(10, '0')}-${owner}`;
}

/** Has the length of a UUID. */
function externalIdOf(uploadId: string): string {
  return uploadId.padStart(36, '0');
}

/** Writes all records to an empty store. */
export async function fillStore(store: StateStore): Promise<void> {
  const leadership = await store.lead();
  await leadership.takeNumbers(BUILDS + UPLOADS);
  const all = [...records(store.owner)];
  await leadership.write({
    builds: all.map(({ build }) => build),
    uploads: all.flatMap(({ uploads }) => uploads),
  });
  await leadership.release();
}
