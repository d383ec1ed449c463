import { ImageError } from '@nodepool-builder/image-builder';
import { SteadyFile } from '@nodepool-builder/image-builder/module-kit';

/** An image without a readable list of packages. The message is the reason, in a phrase for the bill of materials. */
export class UnreadableImage extends Error {
  override readonly name = 'UnreadableImage';
}

/** Reason for people why data of an image could not be read. */
export function reasonOf(error: unknown): string {
  // Buffer throws a RangeError for positions that a damaged table gives.
  if (error instanceof RangeError) return 'it is damaged: its tables point outside of it';
  return error instanceof Error ? error.message : String(error);
}

/** Bytes that can be read at any position: a disk, a partition, a file in a file system. */
export interface ByteSource {
  readonly size: number;
  /** Reads exactly `length` bytes. @throws UnreadableImage beyond the end */
  read(position: number, length: number): Promise<Buffer>;
}

/** The most bytes of one read: sizes in an image are untrusted. */
const LONGEST_READ = 64 * 2 ** 20;

/** Refuses reads beyond the end of a source, and reads of absurd lengths. */
export function checkRange(source: Pick<ByteSource, 'size'>, position: number, length: number): void {
  const isInside = position >= 0 && length >= 0 && position + length <= source.size;
  if (!isInside || !Number.isSafeInteger(position + length)) {
    throw new UnreadableImage('it is damaged: its tables point outside of it');
  }
  if (length > LONGEST_READ) throw new UnreadableImage('it is damaged: a table of it is too large');
}

/** A part of another source. */
export function slice(source: ByteSource, start: number, size: number): ByteSource {
  const part: ByteSource = {
    size,
    read: async (position, length) => {
      checkRange(part, position, length);
      return await source.read(start + position, length);
    },
  };
  return part;
}

/** Reads a whole source of a limited size. @throws UnreadableImage for a larger one */
export async function readWhole(source: ByteSource, limit: number, name: string): Promise<Buffer> {
  if (source.size > limit) {
    throw new UnreadableImage(`${name} in it is larger than ${Math.floor(limit / 2 ** 20)} MiB`);
  }
  return await source.read(0, source.size);
}

/** A file of this host. It is never a symbolic link, a device or a pipe. */
export class FileSource implements ByteSource {
  readonly size: number;
  readonly #file: SteadyFile;
  readonly #signal: AbortSignal;

  /** @throws UnreadableImage */
  static async open(path: string, signal: AbortSignal): Promise<FileSource> {
    try {
      return new FileSource(await SteadyFile.open(path), signal);
    } catch (error) {
      throw error instanceof ImageError ? new UnreadableImage(error.message, { cause: error }) : error;
    }
  }

  private constructor(file: SteadyFile, signal: AbortSignal) {
    this.size = file.size;
    this.#file = file;
    this.#signal = signal;
  }

  async read(position: number, length: number): Promise<Buffer> {
    this.#signal.throwIfAborted();
    checkRange(this, position, length);
    const bytes = Buffer.alloc(length);
    for (let filled = 0; filled < length; ) {
      filled += (await this.#file.read(bytes.subarray(filled), position + filled)).length;
    }
    return bytes;
  }

  close(): Promise<void> {
    return this.#file.close();
  }
}

/** Bytes in memory. */
export function bufferSource(bytes: Buffer): ByteSource {
  return {
    size: bytes.length,
    read: async (position, length) => {
      checkRange({ size: bytes.length }, position, length);
      return bytes.subarray(position, position + length);
    },
  };
}

/** Bytes of a window of {@link ReadAhead}, and how many windows it keeps. */
const WINDOW = 256 * 2 ** 10;
const WINDOWS = 16;

/** Reads another source in larger pieces and keeps the latest: file systems and databases are read in many small ones. */
export class ReadAhead implements ByteSource {
  readonly size: number;
  readonly #source: ByteSource;
  readonly #windows = new Map<number, Buffer>();

  constructor(source: ByteSource) {
    this.size = source.size;
    this.#source = source;
  }

  async read(position: number, length: number): Promise<Buffer> {
    checkRange(this, position, length);
    const index = Math.floor(position / WINDOW);
    const start = position - index * WINDOW;
    if (start + length > WINDOW) return await this.#source.read(position, length);
    const window = this.#windows.get(index) ?? (await this.#load(index));
    return window.subarray(start, start + length);
  }

  async #load(index: number): Promise<Buffer> {
    const [oldest] = this.#windows.keys();
    if (oldest !== undefined && this.#windows.size >= WINDOWS) this.#windows.delete(oldest);
    const begin = index * WINDOW;
    const window = await this.#source.read(begin, Math.min(WINDOW, this.size - begin));
    this.#windows.set(index, window);
    return window;
  }
}
