import { LONGEST_TIMER } from './longest-timer.ts';

/**
 * The result of `work`, or that of `late` if the time is over first.
 *
 * @param work ends when the signal that it is given aborts.
 * @param late is given what `work` failed with then.
 * @throws the signal's reason
 */
export async function within<T>(
  seconds: number,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
  late: (error: unknown) => T | Promise<T>,
): Promise<T> {
  const over = new AbortController();
  const timer = setTimeout(() => over.abort(), Math.min(seconds * 1_000, LONGEST_TIMER));
  try {
    return await work(AbortSignal.any([signal, over.signal]));
  } catch (error) {
    signal.throwIfAborted();
    if (!over.signal.aborted) throw error;
    return await late(error);
  } finally {
    clearTimeout(timer);
  }
}
