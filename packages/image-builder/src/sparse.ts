import type { FileHandle } from 'node:fs/promises';

/** Bytes that are written, or left out, together. Holes that are smaller would cost more than they save. */
const UNIT = 16 * 1024;

const ZEROS = Buffer.alloc(UNIT);

/**
 * Writes bytes at a position of a new file, and leaves holes where they are zero. The file has to be cut to its length
 * in the end: a hole there has no bytes to write.
 *
 * @returns how many bytes were written
 */
export async function writeSparse(file: FileHandle, bytes: Buffer, position: number): Promise<number> {
  let written = 0;
  for (const { begin, end } of dataIn(bytes)) {
    for (let at = begin; at < end; ) {
      at += (await file.write(bytes, at, end - at, position + at)).bytesWritten;
    }
    written += end - begin;
  }
  return written;
}

/** The parts that are not zero, as long as they go. */
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

function isZero(bytes: Buffer, begin: number, end: number): boolean {
  // The first byte tells most of the others.
  return bytes[begin] === 0 && bytes.compare(ZEROS, 0, end - begin, begin, end) === 0;
}
