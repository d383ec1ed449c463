import { type ByteSource, checkRange, UnreadableImage } from '../byte-source.ts';

/** Blocks of a file that lie side by side, in bytes. Bytes of a file outside of all extents are zero. */
export interface Extent {
  /** Position in the file. */
  readonly logical: number;
  /** Position in the file system; undefined for zeros. */
  readonly physical: number | undefined;
  readonly length: number;
}

/** Upper bound of the extents of a file: a package database has a few. */
export const MOST_EXTENTS = 65_536;

/** Content of a file with these extents. */
export function sourceOfExtents(system: ByteSource, size: number, extents: readonly Extent[]): ByteSource {
  if (extents.length > MOST_EXTENTS) throw new UnreadableImage('a file in it has too many fragments');
  const sorted = extents.toSorted((a, b) => a.logical - b.logical);
  const source: ByteSource = {
    size,
    read: async (position, length) => {
      checkRange(source, position, length);
      const bytes = Buffer.alloc(length);
      for (const { logical, physical, length: extent } of sorted) {
        const begin = Math.max(position, logical);
        const end = Math.min(position + length, logical + extent);
        if (physical === undefined || begin >= end) continue;
        bytes.set(await system.read(physical + begin - logical, end - begin), begin - position);
      }
      return bytes;
    },
  };
  return source;
}
