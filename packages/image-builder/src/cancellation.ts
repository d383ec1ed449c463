import type { OperationOptions } from './types.ts';

/** Maximum delay of a timer in Node, in milliseconds: 24 days. */
export const MAX_TIMER_DELAY: number = 2 ** 31 - 1;

/** Returns the signal of the options, or one that never aborts. */
export function signalOf({ signal }: OperationOptions): AbortSignal {
  return signal ?? new AbortController().signal;
}

/**
 * Runs work with the signal of the options.
 *
 * @throws the signal's reason, instead of any other error, once the signal has aborted
 */
export async function withAbort<T>(
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

/** Waits for a promise until the signal aborts. The work behind the promise continues. @throws the signal's reason */
export async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  work.catch(() => {}); // after an abort, nothing else handles its rejection
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const abort = (): void => aborted.reject(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

/**
 * Runs work with a time limit.
 *
 * @param work ends when its signal aborts
 * @param timeoutError makes the error of a timeout from the error of the aborted work
 * @throws the signal's reason, or the error of a timeout
 */
export async function withTimeout<T>(
  seconds: number,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
  timeoutError: (cause: unknown) => Error,
): Promise<T> {
  const timeout = new AbortController();
  const timer = setTimeout(() => timeout.abort(), Math.min(seconds * 1_000, MAX_TIMER_DELAY));
  try {
    return await work(AbortSignal.any([signal, timeout.signal]));
  } catch (error) {
    signal.throwIfAborted();
    if (!timeout.signal.aborted) throw error;
    throw timeoutError(error);
  } finally {
    clearTimeout(timer);
  }
}
