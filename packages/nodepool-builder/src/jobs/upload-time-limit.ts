import { LONGEST_TIMER } from '@nodepool-builder/image-builder/module-kit';

/** An upload took longer than `image-upload-timeout`. The provider may hold parts of it. */
export class UploadTimeoutError extends Error {
  override readonly name = 'UploadTimeoutError';
  readonly retriable = true;
}

/** Runs a part of an upload within the rest of `image-upload-timeout`. */
export type WithinTimeLimit = <T>(work: (signal: AbortSignal) => Promise<T>) => Promise<T>;

/**
 * Starts `image-upload-timeout`, which covers all parts of an upload, including conversion. A part that fails after
 * that time rejects with UploadTimeoutError.
 *
 * @param seconds undefined for no limit
 * @param outer aborts as well
 */
export function startTimeLimit(seconds: number | undefined, outer: AbortSignal): WithinTimeLimit {
  if (seconds === undefined) return (work) => work(outer);
  const over = AbortSignal.timeout(Math.min(seconds * 1000, LONGEST_TIMER));
  const both = AbortSignal.any([outer, over]);
  return async (work) => {
    try {
      return await work(both);
    } catch (cause) {
      if (!over.aborted || outer.aborted) throw cause;
      const message = `the upload took longer than ${seconds} s; check the provider, or raise image-upload-timeout`;
      throw new UploadTimeoutError(message, { cause });
    }
  };
}
