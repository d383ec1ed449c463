import { setTimeout as delay } from 'node:timers/promises';
import type { Admin } from '@nodepool-builder/gearman-node';

/** Polling interval in milliseconds. Without a pause, polling would take a core from the measured program. */
const PAUSE = 5;

/** Time limit in milliseconds, far above any useful figure. */
const LIMIT = 60_000;

/**
 * Polls gearmand's status until exactly the wanted functions have a worker. The measured time is too long by up to the
 * interval and one response: about 10 ms with 4,000 functions.
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
    await delay(PAUSE, undefined, { signal });
  }
}

/** Returns the functions of an image. */
export function functionsOf(imageId: string): string[] {
  return [`image-upload:${imageId}`, `image-delete:${imageId}`];
}
