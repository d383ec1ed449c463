import { ImageError, type ImageErrorCode } from './errors.ts';

interface Meaning {
  readonly code: ImageErrorCode;
  readonly remedy: string;
}

const FULL: Meaning = { code: 'disk-full', remedy: 'make room there' };
const FORBIDDEN: Meaning = {
  code: 'directory-not-usable',
  remedy: 'give the user that runs this program the right to read and write there',
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
};

/** The `code` of an error of the operating system (`ENOENT`); undefined for other errors. */
export function errnoOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

/**
 * What to throw instead of an error of the file system: an {@link ImageError} if the administrator can mend
 * it, else the error itself.
 *
 * @param doing what failed, as the subject of a sentence.
 */
export function asImageError(error: unknown, doing: string): unknown {
  if (error instanceof ImageError) return error;
  const meaning = MEANINGS[errnoOf(error) ?? ''];
  if (meaning === undefined) return error;
  return new ImageError(meaning.code, `${doing} failed: ${(error as Error).message}; ${meaning.remedy}`, {
    cause: error,
  });
}

/** The result of `work`; `undefined` if it fails because a file is not there. */
export async function unlessMissing<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}
