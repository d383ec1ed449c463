import { ImageError } from '@nodepool-builder/image-builder';
import { SteadyFile } from '@nodepool-builder/image-builder/module-kit';

/** An image without a readable list of packages. The message is the reason, in a phrase for the bill of materials. */
export class UnreadableImage extends Error {
  override readonly name = 'UnreadableImage';
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
