import type { Digester } from './digests.ts';
import { type Slot, SlotRing } from './slot-ring.ts';
import type { SteadyFile } from './steady-file.ts';

interface Piece {
  readonly slot: Slot;
  readonly bytes: Buffer;
  /** Fulfilled when the bytes are digested. */
  readonly digested: Promise<void>;
}

/**
 * Yields the file from its beginning, at least one piece, and digests each piece. The next piece is read while one is in
 * use. A slot is reused when it is digested and the piece after it was requested. The last piece is yielded only if the
 * file is unchanged.
 *
 * @throws ImageError `image-changed`, `image-missing`
 */
export async function* readPieces(
  file: Pick<SteadyFile, 'size' | 'read' | 'check'>,
  digester: Digester,
): AsyncGenerator<Buffer, void, undefined> {
  const ring = new SlotRing(digester.memory);
  const read = async (position: number): Promise<Piece> => {
    const slot = await ring.take();
    const bytes = await file.read(slot.bytes, position);
    const digested = digester.update({ begin: slot.begin, end: slot.begin + bytes.length });
    return { slot, bytes, digested };
  };
  const readAhead = (position: number): Promise<Piece> => {
    const piece = read(position);
    piece.catch(() => {}); // handled when the piece is requested, possibly much later
    return piece;
  };
  let position = 0;
  let next = readAhead(position);
  try {
    do {
      const { slot, bytes, digested } = await next;
      position += bytes.length;
      if (position < file.size) next = readAhead(position);
      else await file.check();
      yield bytes;
      void digested.then(() => ring.give(slot));
    } while (position < file.size);
  } finally {
    await Promise.allSettled([next]); // no read may fill a slot after the memory was released
  }
}
