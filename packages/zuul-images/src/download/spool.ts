import { type FileHandle, open, readFile, rm, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import {
  STATE_FILE,
  unlessAborted,
  unlessMissing,
  writeSparse,
} from '@nodepool-builder/image-builder/internal';
import type { Range, RangedObject, WholeObject } from './stored-object.ts';

const BOOT_ID = '/proc/sys/kernel/random/boot_id';

/**
 * Maximum size of a part as a fraction of the object. With four connections, a crash loses at most a hundredth of the
 * download.
 */
const SHARE = 1 / 512;

/**
 * Minimum and maximum size of a part in bytes. Small parts cost round trips; large parts leave connections idle at the
 * end.
 */
const MIN_PART_SIZE = 256 * 1024;
const MAX_PART_SIZE = 32 * MIN_PART_SIZE;

/** Bytes that are read at a time. */
const PIECE = 128 * 1024;

/**
 * The file of an object as its server stores it. Connections write its parts in any order. One reader reads it from the
 * beginning and waits for the data. A journal next to the file lists the finished parts, for {@link Spool.open} after a
 * crash.
 */
export class Spool {
  readonly path: string;
  /** Size in bytes; undefined until the end of an object whose server sends no size. */
  size: number | undefined;
  readonly #partSize: number;
  readonly #file: FileHandle;
  readonly #journal: FileHandle | undefined;
  /** Bytes of each part that are in the file, counted from the part's beginning. */
  readonly #stored = new Map<number, number>();
  #changed = Promise.withResolvers<void>();

  private constructor(path: string, file: FileHandle, size: number | undefined, journal?: FileHandle) {
    this.path = path;
    this.size = size;
    this.#file = file;
    this.#journal = journal;
    // Without a journal, the object is a single part.
    const share = Math.ceil(((size ?? 0) * SHARE) / MIN_PART_SIZE) * MIN_PART_SIZE;
    const partSize = Math.max(MIN_PART_SIZE, Math.min(MAX_PART_SIZE, share));
    this.#partSize = journal === undefined ? Number.MAX_SAFE_INTEGER : partSize;
  }

  /** Opens the spool in a directory. Parts of the same object that are on disk are kept. */
  static async open(directory: string, object: RangedObject | WholeObject): Promise<Spool> {
    const [path, journalPath] = [join(directory, 'stored'), join(directory, 'journal')];
    const header = 'validator' in object ? await headerOf(object) : undefined;
    const parts = await readJournal(journalPath, header);
    const partial = parts && (await unlessMissing(open(path, 'r+')));
    if (partial !== undefined) {
      const spool = new Spool(path, partial, object.size, await open(journalPath, 'a'));
      for (const part of parts ?? []) spool.#stored.set(part, spool.#partSize);
      return spool;
    }
    await rm(journalPath, { force: true }); // precedes emptying the file that the journal describes
    const file = await open(path, 'w+', STATE_FILE);
    if (header === undefined) return new Spool(path, file, object.size);
    const journal = await open(journalPath, 'w', STATE_FILE);
    await journal.write(header);
    return new Spool(path, file, object.size, journal);
  }

  /** Bytes on disk. */
  get present(): number {
    const stored = [...this.#stored.values()].reduce((sum, bytes) => sum + bytes, 0);
    return Math.min(stored, this.size ?? Number.POSITIVE_INFINITY);
  }

  /** Yields the ranges of the parts that are missing. */
  *missing(): Generator<Range, void, undefined> {
    const { size = 0 } = this;
    for (let position = 0; position < size; position += this.#partSize) {
      const end = Math.min(position + this.#partSize, size);
      if (!this.#stored.has(position / this.#partSize)) yield { position, end };
    }
  }

  /** Writes the next bytes of a part. */
  async write(bytes: Buffer, position: number): Promise<void> {
    await writeSparse(this.#file, bytes, position);
    const part = Math.floor(position / this.#partSize);
    const stored = position + bytes.length - part * this.#partSize;
    this.#stored.set(part, stored);
    const isFinished = stored === this.#partSize || position + bytes.length === this.size;
    if (isFinished) await this.#journal?.write(`${part}\n`);
    this.#notify();
  }

  /** Sets the size once all data is written, and extends the file to it, because it may end with a hole. */
  async finish(size: number): Promise<void> {
    this.size = size;
    await this.#file.truncate(size);
    this.#notify();
  }

  /** Yields the object from its beginning. The memory of a piece is reused for the next one. */
  async *pieces(signal: AbortSignal): AsyncGenerator<Buffer, void, undefined> {
    const memory = Buffer.allocUnsafe(PIECE);
    for (let position = 0; this.size === undefined || position < this.size; ) {
      const part = Math.floor(position / this.#partSize);
      const end = Math.min(part * this.#partSize + (this.#stored.get(part) ?? 0), this.size ?? Infinity);
      if (end <= position) {
        await unlessAborted(this.#changed.promise, signal);
        continue;
      }
      const piece = memory.subarray(0, Math.min(PIECE, end - position));
      await this.#read(piece, position);
      yield piece;
      position += piece.length;
    }
  }

  async close(): Promise<void> {
    await this.#file.close();
    await this.#journal?.close();
  }

  #notify(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }

  /** Reads bytes. Beyond the end of the file there is a hole. */
  async #read(memory: Buffer, position: number): Promise<void> {
    for (let filled = 0; filled < memory.length; ) {
      const { bytesRead } = await this.#file.read(memory, filled, memory.length - filled, position + filled);
      if (bytesRead === 0) memory.fill(0, filled);
      filled += bytesRead === 0 ? memory.length : bytesRead;
    }
  }
}

/**
 * Returns the first line of a journal. Data that was not synced survives the end of this process, but not the end of
 * the system.
 */
async function headerOf({ size, validator }: { size: number; validator: string }): Promise<string> {
  const bootId = (await readFile(BOOT_ID, 'utf8')).trim();
  return `${JSON.stringify({ version: 2, bootId, size, validator })}\n`;
}

/**
 * Reads the numbers of the finished parts, and removes a line that a crash truncated. Returns undefined if the journal
 * is missing, damaged, or belongs to another object.
 */
async function readJournal(path: string, header: string | undefined): Promise<number[] | undefined> {
  const text = await unlessMissing(readFile(path, 'utf8'));
  if (header === undefined || text?.startsWith(header) !== true) return undefined;
  const lines = text.slice(0, text.lastIndexOf('\n') + 1);
  await truncate(path, Buffer.byteLength(lines));
  const parts = lines.slice(header.length).split('\n').slice(0, -1).map(Number);
  return parts.every(Number.isSafeInteger) ? parts : undefined;
}
