import { type FileHandle, open, rm } from 'node:fs/promises';
import { asImageError } from './system-error.ts';

/** Minimum size of a hole in bytes, because smaller ones cost more than they save. */
const UNIT = 16 * 1024;

/**
 * Writes bytes at a position of a new file and leaves holes for zeros. Truncate the file to its size afterwards,
 * because it may end with a hole.
 *
 * @returns the number of written bytes
 */
export async function writeSparse(file: FileHandle, bytes: Buffer, position: number): Promise<number> {
  let written = 0;
  for (const { begin, end } of dataIn(bytes)) {
    await writeAt(file, bytes.subarray(begin, end), position + begin);
    written += end - begin;
  }
  return written;
}

/**
 * Writes a new file, and removes it after a failure.
 *
 * @param doing the operation, as the subject of an error of the file system
 */
export async function withNewFile(
  path: string,
  doing: string,
  work: (file: FileHandle) => Promise<void>,
): Promise<void> {
  try {
    const file = await open(path, 'w');
    try {
      await work(file);
    } finally {
      await file.close();
    }
  } catch (error) {
    await rm(path, { force: true });
    throw asImageError(error, doing);
  }
}

/** Writes all bytes at a position. A single write may stop early. */
export async function writeAt(file: FileHandle, bytes: Buffer, position: number): Promise<void> {
  for (let at = 0; at < bytes.length; ) {
    at += (await file.write(bytes, at, bytes.length - at, position + at)).bytesWritten;
  }
}

/** Yields the longest ranges that are not zero. */
function* dataIn(bytes: Buffer): Generator<{ readonly begin: number; readonly end: number }> {
  let begin = 0;
  for (let at = 0; at < bytes.length; at += UNIT) {
    const end = Math.min(at + UNIT, bytes.length);
    if (!isZero(bytes, at, end)) continue;
    if (at > begin) yield { begin, end: at };
    begin = end;
  }
  if (bytes.length > begin) yield { begin, end: bytes.length };
}

/** Returns whether all bytes are zero. */
export function isZero(bytes: Buffer, begin = 0, end: number = bytes.length): boolean {
  // Each byte equals the previous one, and the first one is zero.
  return bytes[begin] === 0 && bytes.compare(bytes, begin + 1, end, begin, end - 1) === 0;
}
