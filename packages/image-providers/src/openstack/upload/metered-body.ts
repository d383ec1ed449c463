import { pipeline, type Readable, Transform } from 'node:stream';
import type { BandwidthLimit } from './bandwidth-limit.ts';

/** What is done with bytes on their way. */
export interface Meter {
  /** Called with each piece before it goes on. */
  readonly onBytes: (bytes: Buffer) => void;
  readonly limit: BandwidthLimit | undefined;
  readonly signal: AbortSignal;
}

/** Bytes that are let through at once under a limit: a tenth of a second at 640 kB/s. */
const LIMITED_PIECE = 64 * 1024;

/** The stream, counted and held back. What ends the one ends the other. */
export function meteredBody(source: Readable, { onBytes, limit, signal }: Meter): Readable {
  const pass = async (piece: Buffer, to: Transform): Promise<void> => {
    for (let start = 0; start < piece.length; start += LIMITED_PIECE) {
      const part = piece.subarray(start, start + LIMITED_PIECE);
      await limit?.take(part.length, signal);
      onBytes(part);
      to.push(part);
    }
  };
  const meter = new Transform({
    transform(piece: Buffer, _encoding, done): void {
      if (limit === undefined) {
        onBytes(piece);
        done(null, piece);
        return;
      }
      pass(piece, this).then(() => done(), done);
    },
  });
  // The request that reads the meter reports what went wrong.
  return pipeline(source, meter, () => {});
}
