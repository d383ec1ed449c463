import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { utf8Names } from '../directory-entries.ts';
import { IMAGE_FILE, limitMode, STATE_FILE } from '../modes.ts';
import { inSlices } from '../slices.ts';
import type { Logger } from '../types.ts';
import { CACHE_RETENTION } from './build-cache.ts';
import { emptyTrash, withdraw } from './deletion.ts';
import { type Layout, parseImageFileName } from './layout.ts';
import { completePublication } from './publication.ts';
import { Staging } from './staging.ts';
import { removeUnused, STATE_RETENTION } from './state-directory.ts';

/**
 * Cleans up after a previous process. It publishes images that were ready, completes deletes, removes everything else
 * from staging, and removes unused caches and the state of failed builds that were not retried. Files that cannot be
 * removed are logged and stay.
 */
export async function recover(layout: Layout, logger: Logger | undefined): Promise<void> {
  await tightenModes(layout, logger);
  for (const name of await utf8Names(layout.staging, logger)) {
    await recoverStaging(layout, new Staging(join(layout.staging, name)), logger).catch((error: unknown) =>
      logger?.error(`cannot clean up "${join(layout.staging, name)}": ${String(error)}`),
    );
  }
  for (const imageId of await utf8Names(layout.deletes, logger)) {
    await withdraw(layout, imageId);
    logger?.info(`image ${imageId}: completed its interrupted delete`);
  }
  await emptyTrash(layout);
  await removeUnused(layout.state, STATE_RETENTION, logger);
  await removeUnused(layout.cache, CACHE_RETENTION, logger).catch((error: unknown) =>
    logger?.error(`cannot remove unused caches below "${layout.cache}": ${String(error)}`),
  );
}

async function recoverStaging(layout: Layout, staging: Staging, logger: Logger | undefined): Promise<void> {
  const imageId = await completePublication(layout, staging);
  if (imageId !== undefined) logger?.info(`image ${imageId}: completed its interrupted publication`);
  await staging.clear();
  if (imageId === undefined) logger?.info(`"${staging.directory}": cleaned up after an interrupted build`);
}

/** Removes excessive permissions of images, which the Python builder with its umask of 0 granted. */
async function tightenModes(layout: Layout, logger: Logger | undefined): Promise<void> {
  await limitMode(layout.lock, STATE_FILE); // flock created it with the umask of this process
  await inSlices(await readdir(layout.root), async (name) => {
    if (parseImageFileName(name) === undefined) return;
    try {
      const tightened = await limitMode(join(layout.root, name), IMAGE_FILE);
      if (tightened) logger?.info(`"${name}" was writable for other users; tightened its mode`);
    } catch (error) {
      logger?.warn(`"${name}" is still writable for other users: ${String(error)}; change its mode to 0644`);
    }
  });
}
