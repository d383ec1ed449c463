import { GearmanError } from './errors.ts';

/**
 * Waits for a promise, or until the signal aborts.
 *
 * @throws GearmanError `aborted`, with the signal's reason as the cause
 */
export async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return await promise;
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const onAbort = () => reject(abortedError(signal));
  if (signal.aborted) onAbort();
  signal.addEventListener('abort', onAbort);
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

/** The error for an operation that a signal aborted. */
export function abortedError(signal: AbortSignal): GearmanError {
  const reason = signal.reason instanceof Error ? signal.reason.message : String(signal.reason);
  return new GearmanError('aborted', `aborted: ${reason}`, { cause: signal.reason });
}
