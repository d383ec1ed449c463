/** The longest time that a timer of Node's takes, in milliseconds: 24 days. */
const LONGEST_TIMER = 2 ** 31 - 1;

/** An upload took longer than `image-upload-timeout`. What it left may still be there. */
export class UploadTimeoutError extends Error {
  override readonly name = 'UploadTimeoutError';
  readonly retriable = true;
}

/** Until when an upload has to be done, and what aborts then. */
export interface TimeLimit {
  readonly signal: AbortSignal;
  /** Milliseconds since 1970. */
  readonly deadline: number;
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
  work: (limit: TimeLimit) => Promise<T>,
): Promise<T> {
  if (seconds === undefined) return await work({ signal: outer, deadline: Infinity });
  const milliseconds = Math.min(seconds * 1000, LONGEST_TIMER);
  const over = AbortSignal.timeout(milliseconds);
  try {
    return await work({ signal: AbortSignal.any([outer, over]), deadline: Date.now() + milliseconds });
  } catch (cause) {
    if (!over.aborted || outer.aborted) throw cause;
    const message = `the upload took longer than ${seconds} s; look at the provider, or raise image-upload-timeout`;
    throw new UploadTimeoutError(message, { cause });
  }
}
