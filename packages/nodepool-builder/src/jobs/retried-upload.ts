import timers from 'node:timers/promises';
import { ImageError, type Logger } from '@nodepool-builder/image-builder';

/** How long after its first failure an upload may begin anew, in milliseconds: longer than a cloud takes to restart. */
const RETRY_PERIOD = 600_000;

/** Between a failure and the next try, in milliseconds: doubled each time, up to the last. */
const FIRST_PAUSE = 5_000;
const LAST_PAUSE = 60_000;

/** Settings of {@link retriedUpload}. */
export interface RetryOptions {
  /** Ends the last try. */
  readonly signal: AbortSignal;
  /** When the upload has to be done, in milliseconds since 1970: no try begins after it. */
  readonly deadline: number;
  readonly logger: Logger;
}

/**
 * Uploads, and again after a failure that may pass by itself. The nodepool daemon of 0.3.1 never tries an upload again
 * that was answered with a failure, so such a failure should not get out.
 *
 * @throws what the last try threw
 */
export async function retriedUpload<T>(
  upload: () => Promise<T>,
  { signal, deadline, logger }: RetryOptions,
): Promise<T> {
  let last: number | undefined;
  for (let pause = FIRST_PAUSE; ; pause = Math.min(pause * 2, LAST_PAUSE)) {
    try {
      return await upload();
    } catch (error) {
      last ??= Math.min(Date.now() + RETRY_PERIOD, deadline);
      if (signal.aborted || !isTransient(error) || Date.now() + pause > last) throw error;
      logger.warn(`${error.message}; the upload is tried again in ${pause / 1000} s`);
      // Aborted while it waits, the failure is what there is to tell.
      await timers.setTimeout(pause, undefined, { signal }).catch(() => Promise.reject(error));
    }
  }
}

/** Whether the cloud may well take the image a little later. What is wrong on this side does not mend itself so soon. */
export function isTransient(error: unknown): error is Error {
  return (
    error instanceof Error &&
    !(error instanceof ImageError) &&
    'retriable' in error &&
    error.retriable === true
  );
}
