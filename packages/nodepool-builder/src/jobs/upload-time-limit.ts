/** The longest time that a timer of Node's takes, in milliseconds: 24 days. */
const LONGEST_TIMER = 2 ** 31 - 1;

/** An upload took longer than `image-upload-timeout`. What it left may still be there. */
export class UploadTimeoutError extends Error {
  override readonly name = 'UploadTimeoutError';
  readonly retriable = true;
}

/**
 * Does work under `image-upload-timeout`.
 *
 * @param seconds undefined for no limit
 * @param outer aborts as well
 * @throws UploadTimeoutError if the work ends with an error after its time
 */
export async function withinTimeLimit<T>(
  seconds: number | undefined,
  outer: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  if (seconds === undefined) return await work(outer);
  const over = AbortSignal.timeout(Math.min(seconds * 1000, LONGEST_TIMER));
  try {
    return await work(AbortSignal.any([outer, over]));
  } catch (cause) {
    if (!over.aborted || outer.aborted) throw cause;
    const message = `the upload took longer than ${seconds} s; look at the provider, or raise image-upload-timeout`;
    throw new UploadTimeoutError(message, { cause });
  }
}
