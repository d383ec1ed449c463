import { promisify } from 'node:util';
import { createGunzip, createZstdDecompress, type Gunzip, type ZstdDecompress } from 'node:zlib';
import { unpackByXz } from './xz.ts';

/** How an object may be packed. */
export type Coding = 'zstd' | 'xz' | 'gzip';

/** Makes of pieces, each lent until the next one is asked for, what was packed in them. */
export type Unpack = (packed: AsyncIterable<Buffer>, signal: AbortSignal) => AsyncIterable<Buffer>;

/** Bytes that are unpacked at a time. */
const CHUNK_SIZE = 256 * 1024;

/**
 * A frame that is skipped, longer than any block. Node 22 takes a zstd frame that is cut short for a whole one: with
 * this behind it, the frame goes on with a block of a type that there is not, which is an error.
 */
const AFTER_THE_LAST_FRAME = Buffer.alloc(8 + 2 ** 18, 0xff);
AFTER_THE_LAST_FRAME.writeUInt32LE(0x184d2a50, 0);
AFTER_THE_LAST_FRAME.writeUInt32LE(2 ** 18, 4);

/** How each is unpacked. Node has no xz of its own. */
export const UNPACKING: Readonly<Record<Coding, Unpack>> = {
  // Node's default allows for a window of 128 MiB, as `zstd` does, which bounds the memory.
  zstd: (packed) => unpackByZlib(withEnd(packed), () => createZstdDecompress({ chunkSize: CHUNK_SIZE })),
  gzip: (packed) => unpackByZlib(packed, () => createGunzip({ chunkSize: CHUNK_SIZE })),
  xz: unpackByXz,
};

/** Unpacks frame after frame: Node's zstd ends with the first one, and says nothing of what comes after it. */
async function* unpackByZlib(
  packed: AsyncIterable<Buffer>,
  create: () => Gunzip | ZstdDecompress,
): AsyncGenerator<Buffer, void, undefined> {
  const pieces = packed[Symbol.asyncIterator]();
  let rest: Buffer | undefined;
  for (;;) {
    const first: Buffer | undefined = rest ?? (await nextOf(pieces));
    if (first === undefined) return;
    const decoder = create();
    const feeding = feed(decoder, first, pieces);
    feeding.catch(() => {}); // the decoder's reader is told
    yield* decoder as AsyncIterable<Buffer>;
    rest = await feeding;
  }
}

/**
 * Gives a decoder one piece after the other, until it has enough.
 *
 * @returns what it left of the last one
 */
async function feed(
  decoder: Gunzip | ZstdDecompress,
  first: Buffer,
  pieces: AsyncIterator<Buffer>,
): Promise<Buffer | undefined> {
  const write = promisify(
    (piece: Buffer, taken: (error?: Error | null) => void) => void decoder.write(piece, taken),
  );
  try {
    for (let piece: Buffer | undefined = first; piece !== undefined; piece = await nextOf(pieces)) {
      const end = decoder.bytesWritten + piece.length;
      await write(piece);
      // After a frame's end it takes no more of a piece that goes on.
      if (decoder.bytesWritten < end) return piece.subarray(piece.length - (end - decoder.bytesWritten));
    }
    decoder.end();
  } catch (error) {
    decoder.destroy(error instanceof Error ? error : new Error(String(error)));
    throw error;
  }
  return undefined;
}

async function* withEnd(packed: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, undefined> {
  yield* packed;
  yield AFTER_THE_LAST_FRAME;
}

async function nextOf(pieces: AsyncIterator<Buffer>): Promise<Buffer | undefined> {
  const { done, value } = await pieces.next();
  return done === true ? undefined : value;
}
