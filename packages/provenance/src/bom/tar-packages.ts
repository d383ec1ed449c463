import { createReadStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { type ByteSource, bufferSource, FileSource, slice, UnreadableImage } from './byte-source.ts';
import { DATABASE_PATHS, type FoundDatabases, findPackages } from './databases/find-packages.ts';

const BLOCK = 512;

/** The most bytes of the wanted files in a compressed archive: they are kept in memory. */
const LARGEST_SUM = 256 * 2 ** 20;

/** Installed packages of a tar archive, which is never unpacked. @throws UnreadableImage */
export async function packagesOfTar(path: string, signal: AbortSignal): Promise<FoundDatabases> {
  const file = await FileSource.open(path, signal);
  try {
    const found = new Map<string, ByteSource>();
    for (let position = 0; position + BLOCK <= file.size; ) {
      const entry = readEntry(await file.read(position, BLOCK));
      position += BLOCK;
      if (entry === undefined) break;
      if (isWanted(entry) && position + entry.size <= file.size) {
        found.set(entry.name, slice(file, position, entry.size));
      }
      position += Math.ceil(entry.size / BLOCK) * BLOCK;
    }
    return await packagesIn(found);
  } finally {
    await file.close();
  }
}

/** Installed packages of a tar archive that gzip compressed. @throws UnreadableImage */
export async function packagesOfTgz(path: string, signal: AbortSignal): Promise<FoundDatabases> {
  // A stream of a FIFO would wait for ever.
  await (await FileSource.open(path, signal)).close();
  const reader = new StreamedTar();
  try {
    await pipeline(
      createReadStream(path),
      createGunzip(),
      async (chunks) => {
        for await (const chunk of chunks as AsyncIterable<Buffer>) reader.take(chunk);
      },
      { signal },
    );
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof UnreadableImage) throw error;
    throw new UnreadableImage(`it cannot be decompressed: ${(error as Error).message}`, { cause: error });
  }
  return await packagesIn(reader.files);
}

async function packagesIn(files: ReadonlyMap<string, ByteSource>): Promise<FoundDatabases> {
  const found = await findPackages({ find: async (path) => files.get(path) });
  if (found !== undefined) return found;
  throw new UnreadableImage('no database of dpkg, rpm or apk is in it');
}

interface Entry {
  readonly name: string;
  readonly type: string;
  readonly size: number;
}

/** Header of an entry; undefined for a block of zeros, which ends the archive. https://www.gnu.org/software/tar/manual/html_node/Standard.html */
function readEntry(block: Buffer): Entry | undefined {
  if (block.every((byte) => byte === 0)) return undefined;
  if (block.toString('latin1', 257, 262) !== 'ustar')
    throw new UnreadableImage('it is a damaged tar archive');
  const size = sizeOf(block.subarray(124, 136));
  const name = textOf(block.subarray(0, 100));
  // GNU has other fields in the place of the prefix.
  const prefix = block.toString('latin1', 262, 263) === '\0' ? textOf(block.subarray(345, 500)) : '';
  const full = prefix === '' ? name : `${prefix}/${name}`;
  if (!Number.isSafeInteger(size) || size < 0) throw new UnreadableImage('it is a damaged tar archive');
  return { name: full.replace(/^(?:\.?\/)+/, ''), type: textOf(block.subarray(156, 157)), size };
}

/** An octal number, or in archives of GNU a binary one. */
function sizeOf(field: Buffer): number {
  if ((field.readUInt8(0) & 0x80) !== 0) return field.readUIntBE(6, 6);
  return Number.parseInt(textOf(field).trim() || '0', 8);
}

function textOf(field: Buffer): string {
  const end = field.indexOf(0);
  return field.toString('utf8', 0, end === -1 ? field.length : end);
}

function isWanted({ name, type }: Entry): boolean {
  return (type === '' || type === '0') && DATABASE_PATHS.has(name);
}

/** Finds entries in a stream of chunks. */
class StreamedTar {
  readonly #files = new Map<string, ByteSource>();
  #header: Buffer = Buffer.alloc(0);
  #skip = 0;
  /** The wanted entry whose content comes next, and its content up to now. */
  #entry: { readonly name: string; readonly bytes: Buffer; filled: number } | undefined;
  #sum = 0;
  #hasEnded = false;

  get files(): ReadonlyMap<string, ByteSource> {
    return this.#files;
  }

  take(chunk: Buffer): void {
    let rest = chunk;
    while (rest.length > 0) rest = this.#step(rest);
  }

  /** Uses the begin of the bytes, and returns the rest. */
  #step(bytes: Buffer): Buffer {
    if (this.#hasEnded) return Buffer.alloc(0);
    if (this.#entry !== undefined) return this.#fill(this.#entry, bytes);
    if (this.#skip > 0) {
      const skipped = Math.min(this.#skip, bytes.length);
      this.#skip -= skipped;
      return bytes.subarray(skipped);
    }
    const used = Math.min(BLOCK - this.#header.length, bytes.length);
    this.#header = Buffer.concat([this.#header, bytes.subarray(0, used)]);
    if (this.#header.length === BLOCK) {
      const entry = readEntry(this.#header);
      this.#header = Buffer.alloc(0);
      if (entry === undefined) this.#hasEnded = true;
      else this.#begin(entry);
    }
    return bytes.subarray(used);
  }

  #begin(entry: Entry): void {
    const padded = Math.ceil(entry.size / BLOCK) * BLOCK;
    if (!isWanted(entry) || entry.size === 0) {
      this.#skip = padded;
      return;
    }
    this.#sum += entry.size;
    if (this.#sum > LARGEST_SUM) {
      throw new UnreadableImage(`its package databases are larger than ${LARGEST_SUM / 2 ** 20} MiB`);
    }
    this.#entry = { name: entry.name, bytes: Buffer.alloc(entry.size), filled: 0 };
    this.#skip = padded - entry.size;
  }

  #fill(entry: { readonly name: string; readonly bytes: Buffer; filled: number }, bytes: Buffer): Buffer {
    const used = bytes.copy(entry.bytes, entry.filled);
    entry.filled += used;
    if (entry.filled === entry.bytes.length) {
      this.#files.set(entry.name, bufferSource(entry.bytes));
      this.#entry = undefined;
    }
    return bytes.subarray(used);
  }
}
