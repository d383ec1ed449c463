import type { OperationOptions } from '@nodepool-builder/image-builder';
import { signalOf } from '../signal-of.ts';

/**
 * Works with the signal of the options.
 *
 * @throws the signal's reason, in place of any error, once that has aborted
 */
export async function obeying<T>(
  options: OperationOptions,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const signal = signalOf(options);
  signal.throwIfAborted();
  try {
    return await work(signal);
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  }
}
