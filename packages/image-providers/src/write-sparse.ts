import type { FileHandle } from 'node:fs/promises';

/** A run of zeros at least this long becomes a hole; the block size of nearly every file system. */
const HOLE = 4096;

/** As long as the pieces in which files are read here. */
const ZEROS = Buffer.alloc(512 * 1024);

/**
 * Writes what is not zero at a position of a new file; skipping the rest leaves it a hole. The file has to be cut to its
 * length in the end, for a hole there has no bytes to write.
 */
export async function writeSparse(to: FileHandle, chunk: Buffer, position: number): Promise<void> {
  let start = 0;
  while (start < chunk.length) {
    const zeros = zerosAt(chunk, start);
    if (zeros > 0) {
      start += zeros;
      continue;
    }
    let end = start + HOLE;
    while (end < chunk.length && zerosAt(chunk, end) === 0) end += HOLE;
    const data = chunk.subarray(start, end);
    for (let written = 0; written < data.length; ) {
      const { bytesWritten } = await to.write(
        data,
        written,
        data.length - written,
        position + start + written,
      );
      written += bytesWritten;
    }
    start = end;
  }
}

/** The length of the block at `start` if it is all zeros, else 0. A whole empty chunk counts as one block. */
function zerosAt(chunk: Buffer, start: number): number {
  if (start === 0 && isZero(chunk)) return chunk.length;
  const end = Math.min(start + HOLE, chunk.length);
  return chunk.compare(ZEROS, 0, end - start, start, end) === 0 ? end - start : 0;
}

function isZero(chunk: Buffer): boolean {
  return chunk.length <= ZEROS.length && chunk.equals(ZEROS.subarray(0, chunk.length));
}
