import { type FileHandle, open } from 'node:fs/promises';

const RECORD = 512;

/** A regular file in a tar. */
export interface TarFile {
  /** Name without a leading `./`. */
  readonly name: string;
  readonly size: number;
  /** Offset of the content from the beginning of the tar. */
  readonly offset: number;
}

/** Lists the regular files in an uncompressed tar. Ends at the first record that is not a header. */
export async function* readTar(path: string): AsyncGenerator<TarFile, void, undefined> {
  const file = await open(path);
  try {
    const header = Buffer.alloc(RECORD);
    for (let at = 0; await fill(file, header, at); ) {
      if (!isHeader(header)) return;
      const size = sizeOf(header);
      const type = String.fromCharCode(header.readUInt8(156));
      if (type === '0' || type === '\0') yield { name: nameOf(header), size, offset: at + RECORD };
      at += RECORD + Math.ceil(size / RECORD) * RECORD;
    }
  } finally {
    await file.close();
  }
}

/** Yields the bytes of a file in a tar in chunks. */
export async function* tarContent(
  path: string,
  { size, offset }: TarFile,
): AsyncGenerator<Buffer, void, undefined> {
  const file = await open(path);
  try {
    if (size === 0) return;
    // The stream closes the file.
    yield* file.createReadStream({ start: offset, end: offset + size - 1, highWaterMark: 2 ** 20 });
  } finally {
    await file.close();
  }
}

async function fill(file: FileHandle, bytes: Buffer, position: number): Promise<boolean> {
  for (let length = 0; length < bytes.length; ) {
    const { bytesRead } = await file.read(bytes, length, bytes.length - length, position + length);
    if (bytesRead === 0) return false;
    length += bytesRead;
  }
  return true;
}

/** Returns whether a header has a correct checksum. A record of zeros, as at the end, does not. */
function isHeader(header: Buffer): boolean {
  const wanted = Number.parseInt(text(header, 148, 8), 8);
  const sum = header.reduce((total, byte, at) => total + (at >= 148 && at < 156 ? 0x20 : byte), 0);
  return sum === wanted;
}

function nameOf(header: Buffer): string {
  const isUstar = header.toString('latin1', 257, 263) === 'ustar\0';
  const prefix = isUstar ? text(header, 345, 155) : '';
  return `${prefix && `${prefix}/`}${text(header, 0, 100)}`.replace(/^\.\//, '');
}

/** Reads the size. GNU tar writes sizes from 8 GiB in binary. */
function sizeOf(header: Buffer): number {
  if ((header.readUInt8(124) & 0x80) !== 0) return Number(header.readBigUInt64BE(128));
  return Number.parseInt(text(header, 124, 12), 8) || 0;
}

function text(header: Buffer, at: number, length: number): string {
  const field = header.toString('utf8', at, at + length);
  const end = field.indexOf('\0');
  return (end === -1 ? field : field.slice(0, end)).trim();
}
