import type { ByteSource } from '../byte-source.ts';
import { damagedRpmDatabase as damaged } from './rpm-header.ts';

// https://www.sqlite.org/fileformat.html

/** A value of a row. Fractions, which do not occur in an rpm database, are `undefined`. */
type Value = Buffer | string | number | null | undefined;

const HEADER = 100;
const INTERIOR = 5;
const LEAF = 13;

/** The deepest tree: more than any table of 2^32 pages has. */
const DEEPEST_TREE = 16;

/**
 * Opens a database for reading, where it lies in an image. SQLite itself would need a copy of it, which can have some
 * hundred megabytes, and would block this process while it reads a file that an attacker may have written.
 *
 * @param largestRow in bytes
 * @throws UnreadableImage
 */
export async function openSqlite(file: ByteSource, largestRow: number): Promise<SqliteReader> {
  const head = file.size < HEADER ? undefined : await file.read(0, HEADER);
  if (head?.toString('latin1', 0, 16) !== 'SQLite format 3\0') throw damaged();
  const coded = head.readUInt16BE(16);
  const pageSize = coded === 1 ? 65_536 : coded;
  const usable = pageSize - head.readUInt8(20);
  if (pageSize < 512 || usable < 480) throw damaged();
  return new SqliteReader(file, pageSize, usable, largestRow);
}

/** Reads tables of a database. */
export class SqliteReader {
  readonly #file: ByteSource;
  readonly #pageSize: number;
  /** Bytes of a page without those that an extension reserves. */
  readonly #usable: number;
  readonly #largestRow: number;
  /** Pages that may still be read: a sound table has each page once. */
  #budget: number;

  constructor(file: ByteSource, pageSize: number, usable: number, largestRow: number) {
    this.#file = file;
    this.#pageSize = pageSize;
    this.#usable = usable;
    this.#largestRow = largestRow;
    this.#budget = 2 * Math.ceil(file.size / pageSize);
  }

  /** Rows of a table. @throws UnreadableImage, also if there is no such table */
  async *rows(table: string): AsyncGenerator<readonly Value[]> {
    for await (const [type, name, , root] of this.#walk(1, 0)) {
      if (type !== 'table' || name !== table || typeof root !== 'number') continue;
      yield* this.#walk(root, 0);
      return;
    }
    throw damaged();
  }

  async #page(number: number): Promise<Buffer> {
    this.#budget -= 1;
    if (number < 1 || this.#budget < 0) throw damaged();
    return await this.#file.read((number - 1) * this.#pageSize, this.#pageSize);
  }

  async *#walk(number: number, depth: number): AsyncGenerator<readonly Value[]> {
    if (depth > DEEPEST_TREE) throw damaged();
    const page = await this.#page(number);
    const start = number === 1 ? HEADER : 0;
    const type = page.readUInt8(start);
    if (type !== INTERIOR && type !== LEAF) throw damaged();
    const cells = start + (type === INTERIOR ? 12 : 8);
    const count = page.readUInt16BE(start + 3);
    if (cells + count * 2 > page.length) throw damaged();
    for (let index = 0; index < count; index += 1) {
      const at = page.readUInt16BE(cells + index * 2);
      if (type === INTERIOR) yield* this.#walk(uint32(page, at), depth + 1);
      else yield valuesOf(await this.#payload(page, at));
    }
    if (type === INTERIOR) yield* this.#walk(page.readUInt32BE(start + 8), depth + 1);
  }

  /** Bytes of a row. A long row continues on other pages. */
  async #payload(page: Buffer, cell: number): Promise<Buffer> {
    const [length, afterLength] = varint(page, cell);
    const [, begin] = varint(page, afterLength);
    if (length > this.#largestRow) throw damaged();
    const local = this.#localLength(length);
    if (begin + local > page.length) throw damaged();
    const parts = [page.subarray(begin, begin + local)];
    let missing = length - local;
    let next = missing > 0 ? uint32(page, begin + local) : 0;
    while (missing > 0) {
      const overflow = await this.#page(next);
      const part = overflow.subarray(4, 4 + Math.min(missing, this.#usable - 4));
      parts.push(part);
      missing -= part.length;
      next = overflow.readUInt32BE(0);
    }
    return Buffer.concat(parts);
  }

  /** Bytes of a row on its first page. */
  #localLength(length: number): number {
    const most = this.#usable - 35;
    if (length <= most) return length;
    const least = Math.floor(((this.#usable - 12) * 32) / 255) - 23;
    const fitting = least + ((length - least) % (this.#usable - 4));
    return fitting <= most ? fitting : least;
  }
}

/** Values of a row: the types of all, then their bytes. */
function valuesOf(payload: Buffer): readonly Value[] {
  const [headerLength, first] = varint(payload, 0);
  const values: Value[] = [];
  let position = headerLength;
  for (let at = first; at < headerLength; ) {
    const [type, next] = varint(payload, at);
    const end = position + lengthOf(type);
    if (end > payload.length) throw damaged();
    values.push(decoded(type, payload.subarray(position, end)));
    at = next;
    position = end;
  }
  return values;
}

/** Bytes of the types 0 to 11; longer types are texts and blobs. */
const LENGTHS = [0, 1, 2, 3, 4, 6, 8, 8, 0, 0];

function lengthOf(type: number): number {
  return type >= 12 ? Math.floor((type - 12) / 2) : (LENGTHS[type] ?? 0);
}

function decoded(type: number, bytes: Buffer): Value {
  if (type === 0) return null;
  if (type >= 12) return type % 2 === 0 ? bytes : bytes.toString();
  if (type === 8 || type === 9) return type - 8;
  return bytes.length > 0 && bytes.length <= 6 ? bytes.readIntBE(0, bytes.length) : undefined;
}

/** A number of one to nine bytes, and the position behind it. */
function varint(bytes: Buffer, start: number): readonly [value: number, next: number] {
  let value = 0;
  for (let index = 0; index < 8; index += 1) {
    const byte = uint8(bytes, start + index);
    value = value * 128 + (byte & 0x7f);
    if (byte < 0x80) return [value, start + index + 1];
  }
  return [value * 256 + uint8(bytes, start + 8), start + 9];
}

function uint8(bytes: Buffer, position: number): number {
  const byte = bytes[position];
  if (byte === undefined) throw damaged();
  return byte;
}

function uint32(bytes: Buffer, position: number): number {
  if (position + 4 > bytes.length) throw damaged();
  return bytes.readUInt32BE(position);
}
