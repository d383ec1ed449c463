import { ImageError, type ImageErrorCode } from './errors.ts';

interface Meaning {
  readonly code: ImageErrorCode;
  readonly remedy: string;
}

const FULL: Meaning = { code: 'disk-full', remedy: 'free space there' };
const FORBIDDEN: Meaning = {
  code: 'directory-not-usable',
  remedy: 'grant the user that runs this program read and write access there',
};
const ABSENT: Meaning = { code: 'directory-not-usable', remedy: 'create the directory, or name another' };

const MEANINGS: Readonly<Record<string, Meaning>> = {
  ENOSPC: FULL,
  EDQUOT: FULL,
  EACCES: FORBIDDEN,
  EPERM: FORBIDDEN,
  EROFS: FORBIDDEN,
  ENOENT: ABSENT,
  ENOTDIR: ABSENT,
  EEXIST: ABSENT, // a file in place of the directory
};

/** Returns the code of an operating-system error, such as `ENOENT`; undefined for other errors. */
export function errnoOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

/**
 * Converts an error of the file system that an administrator can correct to an {@link ImageError}. Returns others
 * unchanged.
 *
 * @param doing the failed operation, as the subject of a sentence
 */
export function asImageError(error: unknown, doing: string): unknown {
  if (error instanceof ImageError) return error;
  const meaning = MEANINGS[errnoOf(error) ?? ''];
  if (meaning === undefined) return error;
  return new ImageError(meaning.code, `${doing} failed: ${(error as Error).message}; ${meaning.remedy}`, {
    cause: error,
  });
}

/** Returns the result of `work`, or `undefined` if it fails with ENOENT. */
export async function unlessMissing<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

/** Waits for work and converts its failure to an {@link ImageError}. */
export async function explained<T>(work: Promise<T>, doing: string, signal?: AbortSignal): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (signal?.aborted && !(error instanceof ImageError)) {
      throw new ImageError('build-aborted', `${doing} was aborted`, { cause: signal.reason });
    }
    throw asImageError(error, doing);
  }
}
