import { dataExtents, type Extent } from './formats/disk-information.ts';
import { SteadyFile } from './hashed-reader/steady-file.ts';
import { isZero } from './sparse.ts';
import type { Progress } from './types.ts';

/** A block of a disk. */
export interface DiskBlock {
  /** Position in blocks, from 0. */
  readonly index: number;
  /** The whole block; the last one ends with zeros. The buffer is reused once `send` has finished. */
  readonly bytes: Buffer;
}

export interface BlockOptions {
  /** Size of a block in bytes. */
  readonly blockSize: number;
  /** Maximum number of blocks in memory, and of concurrent calls of `send`. */
  readonly concurrency: number;
  readonly send: (block: DiskBlock) => Promise<unknown>;
  /** Returns whether a block need not be sent, because the target already has it. */
  readonly isSkipped?: (index: number) => boolean;
  /** Blocks to send even if they are zero, because the target contains other data there. */
  readonly also?: Iterable<number>;
  readonly signal: AbortSignal;
  /** Reports the bytes read and sent so far, of those that the file stores. */
  readonly onProgress?: (progress: Progress) => void;
}

/**
 * Sends the blocks of a raw image that are not zero, several at a time. Memory does not grow with the image.
 *
 * @returns the number of calls of `send`
 * @throws the first error of `send`, or the signal's reason, once no call of `send` runs
 * @throws ImageError `image-missing`, `image-changed`
 */
export async function sendBlocks(path: string, options: BlockOptions): Promise<number> {
  const { blockSize, concurrency, send, isSkipped = () => false, signal, onProgress } = options;
  const forced = new Set(options.also);
  const file = await SteadyFile.open(path, true);
  const failure = new AbortController();
  const either = AbortSignal.any([signal, failure.signal]);
  let [sent, done] = [0, 0];
  try {
    const extents = await dataExtents({ path, format: 'raw' }, { signal });
    const wanted = indexesOf(extents, forced, blockSize).filter((index) => !isSkipped(index));
    const rest = wanted.values();
    const worker = async (): Promise<void> => {
      const bytes = Buffer.allocUnsafe(blockSize);
      for (const index of rest) {
        either.throwIfAborted();
        const { length } = await file.read(bytes, index * blockSize);
        bytes.fill(0, length);
        if (forced.has(index) || !isZero(bytes)) {
          sent++;
          await send({ index, bytes });
        }
        onProgress?.({ done: ++done * blockSize, total: wanted.length * blockSize });
      }
    };
    const workers = Array.from({ length: Math.min(concurrency, wanted.length) }, worker);
    for (const running of workers) running.catch((error: unknown) => failure.abort(error));
    await Promise.allSettled(workers);
    either.throwIfAborted();
    await file.check();
    return sent;
  } finally {
    await file.close();
  }
}

/** Yields the indexes of blocks with data, and of `forced` blocks, in order. */
function indexesOf(extents: readonly Extent[], forced: ReadonlySet<number>, blockSize: number): number[] {
  const indexes = new Set(forced);
  for (const { start, length } of extents) {
    for (let index = Math.floor(start / blockSize); index * blockSize < start + length; index++) {
      indexes.add(index);
    }
  }
  return [...indexes].toSorted((one, other) => one - other);
}
