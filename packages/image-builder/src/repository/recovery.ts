import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { unlessMissing } from '../system-error.ts';
import type { Logger } from '../types.ts';
import { beganDeletes, emptyTrash, withdraw } from './deletion.ts';
import type { Layout } from './layout.ts';
import { completePublication } from './publication.ts';
import { Staging } from './staging.ts';
import { clearAbandoned } from './state-directory.ts';

/**
 * Ends what a process before this one began: images that were ready are published, deletes are carried out, and
 * all else in staging is undone and removed, and so is what builds kept for another try that did not come. What cannot
 * be undone stays as it is, and is logged.
 */
export async function recover(layout: Layout, logger: Logger | undefined): Promise<void> {
  for (const name of await readdir(layout.staging)) {
    await recoverStaging(layout, new Staging(join(layout.staging, name)), logger).catch((error: unknown) =>
      logger?.error(`"${join(layout.staging, name)}" could not be cleared: ${String(error)}`),
    );
  }
  for (const imageId of await beganDeletes(layout)) {
    await withdraw(layout, imageId);
    logger?.info(`image ${imageId}: its delete, which was cut short, is done`);
  }
  await emptyTrash(layout);
  await clearAbandoned(layout.state);
}

async function recoverStaging(layout: Layout, staging: Staging, logger: Logger | undefined): Promise<void> {
  const imageId = await completePublication(layout, staging);
  if (imageId !== undefined) logger?.info(`image ${imageId}: its publication, which was cut short, is done`);
  await staging.clear();
  if (imageId === undefined) logger?.info(`"${staging.directory}": the remains of a build were cleared`);
}

/** The ids of all manifests. */
export async function manifestIds(layout: Layout): Promise<string[]> {
  const names = (await unlessMissing(readdir(layout.manifests))) ?? [];
  return names.filter((name) => name.endsWith('.json')).map((name) => name.slice(0, -'.json'.length));
}
