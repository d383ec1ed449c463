import type { OperationOptions } from '@nodepool-builder/image-builder';
import { SteadyFile } from '@nodepool-builder/image-builder/internal';
import { signalOf } from '@nodepool-builder/image-builder/plugin';

/** Size of a tar record, in bytes. */
const RECORD = 512;

/** Unit of disk sizes in Compute Engine, in bytes. */
const GIBIBYTE = 2 ** 30;

/** Number of sparse-map entries in the first header, and in each further one. */
const FIRST_PARTS = 4;
const FURTHER_PARTS = 21;

/** Bytes per read. The size is fixed, so that the same disk always gives the same compressed archive. */
const CHUNK = 1024 * 1024;

/** A disk range that contains data, in bytes. */
export interface DiskPart {
  readonly start: number;
  readonly length: number;
}

/** Returns the disk size in Compute Engine: the file size, rounded up to whole GiB. */
export function diskSize(fileSize: number): number {
  return Math.max(1, Math.ceil(fileSize / GIBIBYTE)) * GIBIBYTE;
}

/**
 * Yields a tar archive in the old GNU format with one sparse file `disk.raw`, as Compute Engine imports it. The same
 * disk always gives the same bytes.
 *
 * @param parts ranges of the file that contain data, in ascending order
 * @see https://www.gnu.org/software/tar/manual/html_node/Old-GNU-Format.html
 */
export async function* diskArchive(
  path: string,
  parts: readonly DiskPart[],
  options: OperationOptions = {},
): AsyncGenerator<Buffer, void, undefined> {
  const signal = signalOf(options);
  const file = await SteadyFile.open(path, true);
  try {
    const size = diskSize(file.size);
    const stored = parts.map(({ start, length }) => align(start, Math.min(start + length, file.size)));
    yield* headers(stored, size);
    let done = 0;
    const total = stored.reduce((sum, { length }) => sum + length, 0);
    for (const { start, length } of stored) {
      for (let at = start; at < start + length; ) {
        signal.throwIfAborted();
        const bytes = Buffer.alloc(Math.min(CHUNK, start + length - at));
        await file.read(bytes, at); // Beyond the end of the file, the buffer stays zero.
        at += bytes.length;
        done += bytes.length;
        yield bytes;
        options.onProgress?.({ done, total });
      }
    }
    yield Buffer.alloc(2 * RECORD);
    await file.check();
  } finally {
    await file.close();
  }
}

/** Extends a part to whole records, as tar stores it. */
function align(start: number, end: number): DiskPart {
  const first = Math.floor(start / RECORD) * RECORD;
  return { start: first, length: Math.ceil(end / RECORD) * RECORD - first };
}

function* headers(stored: readonly DiskPart[], size: number): Generator<Buffer> {
  const last = stored.at(-1);
  const hasEnd = last === undefined || last.start + last.length < size;
  // A disk that ends with a hole has an empty part at its end.
  const parts = hasEnd ? [...stored, { start: size, length: 0 }] : stored;
  const header = Buffer.alloc(RECORD);
  header.write('disk.raw', 0);
  writeNumber(header, 0o644, 100, 8); // mode
  writeNumber(header, 0, 108, 8); // owner
  writeNumber(header, 0, 116, 8); // group
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  writeNumber(header, length, 124, 12); // size in the archive
  writeNumber(header, 0, 136, 12); // modification time
  header.write('S', 156); // type: sparse file
  header.write('ustar  \0', 257); // magic: GNU
  writeParts(header, parts.slice(0, FIRST_PARTS), 386);
  header[482] = parts.length > FIRST_PARTS ? 1 : 0; // whether a further header follows
  writeNumber(header, size, 483, 12); // size of the file
  header.fill(' ', 148, 156);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  yield header;
  for (let at = FIRST_PARTS; at < parts.length; at += FURTHER_PARTS) {
    const further = Buffer.alloc(RECORD);
    writeParts(further, parts.slice(at, at + FURTHER_PARTS), 0);
    further[504] = parts.length > at + FURTHER_PARTS ? 1 : 0;
    yield further;
  }
}

function writeParts(header: Buffer, parts: readonly DiskPart[], offset: number): void {
  for (const [index, { start, length }] of parts.entries()) {
    writeNumber(header, start, offset + index * 24, 12);
    writeNumber(header, length, offset + index * 24 + 12, 12);
  }
}

/** Writes a number in octal digits, or in base 256 if it is at least 8 GiB, as GNU tar does. */
function writeNumber(header: Buffer, value: number, offset: number, length: number): void {
  const digits = value.toString(8).padStart(length - 1, '0');
  if (digits.length < length) {
    header.write(digits, offset, 'latin1');
    return;
  }
  header.fill(0, offset, offset + length);
  header.writeBigUInt64BE(BigInt(value), offset + length - 8);
  header[offset] = 0x80;
}
