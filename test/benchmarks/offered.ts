import type { Admin } from '@nodepool-builder/gearman-node';

/** Long past any figure worth telling, in milliseconds. */
const LIMIT = 60_000;

/**
 * Asks gearmand for its status, again and again without a pause, until the functions that have a worker are as
 * wanted. One answer with 4,000 functions takes some milliseconds: that is how exact a time taken by it is.
 *
 * @throws the signal's reason; TimeoutError after a minute
 */
export async function untilOffered(
  admin: Admin,
  wanted: (offered: ReadonlySet<string>) => boolean,
  signal: AbortSignal,
): Promise<void> {
  const limited = AbortSignal.any([signal, AbortSignal.timeout(LIMIT)]);
  for (;;) {
    limited.throwIfAborted();
    const functions = await admin.status();
    const offered = functions.filter(({ availableWorkers }) => availableWorkers > 0);
    if (wanted(new Set(offered.map(({ name }) => name)))) return;
  }
}

/** The functions that are offered for an image. */
export function functionsOf(imageId: string): string[] {
  return [`image-upload:${imageId}`, `image-delete:${imageId}`];
}
