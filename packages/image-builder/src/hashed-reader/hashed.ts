import type { Hash } from 'node:crypto';

/** Yields the pieces, and adds them to a hash. */
export async function* hashed(
  pieces: AsyncIterable<Buffer>,
  hash: Hash,
): AsyncGenerator<Buffer, void, undefined> {
  for await (const piece of pieces) {
    hash.update(piece);
    yield piece;
  }
}
