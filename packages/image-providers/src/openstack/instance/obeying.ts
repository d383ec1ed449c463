import { setTimeout as delay } from 'node:timers/promises';
import type { OperationOptions } from '@nodepool-builder/image-builder';
import { pausesBetweenLooks } from '../upload/poll.ts';

/**
 * Works with the signal of the options.
 *
 * @throws the signal's reason, in place of any error, once that has aborted
 */
export async function obeying<T>(
  { signal = new AbortController().signal }: OperationOptions,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  signal.throwIfAborted();
  try {
    return await work(signal);
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  }
}

/** Looks again and again until there is something to see; no time limit but the signal's. */
export async function until<T>(look: () => Promise<T | undefined>, signal: AbortSignal): Promise<T> {
  const pauses = pausesBetweenLooks();
  for (;;) {
    const seen = await look();
    if (seen !== undefined) return seen;
    await delay(pauses.next().value, undefined, { signal });
  }
}
