import {
  type Checksums,
  HashedReader,
  ImageError,
  type ImageFile,
  type Progress,
} from '@nodepool-builder/image-builder';
import { metered, SteadyFile } from '@nodepool-builder/image-builder/internal';
import { type BandwidthLimit, CloudError } from '@nodepool-builder/image-builder/plugin';
import type { ImageData } from '../image-api.ts';

/** Bytes per read of a range. */
const PIECE = 2 ** 20;

export interface FileDataOptions {
  readonly onProgress: (progress: Progress) => void;
  readonly limit: BandwidthLimit | undefined;
  readonly signal: AbortSignal;
}

/**
 * Runs work with an open image file.
 *
 * @throws CloudError `image-missing-on-disk` if the file is missing or changes
 */
export async function withFile<T>(
  file: ImageFile,
  options: FileDataOptions,
  work: (file: FileData) => Promise<T>,
): Promise<T> {
  try {
    const source = await HashedReader.open(file.path, {
      checksums: file.checksums,
      signal: options.signal,
    });
    try {
      if (source.size === file.size) return await work(new FileData(file, source, options));
      throw new ImageError(
        'image-changed',
        `"${file.path}" has ${source.size} bytes instead of ${file.size}: it changed before its upload; build the image again`,
      );
    } finally {
      await source.close();
    }
  } catch (error) {
    throw asDiskError(error);
  }
}

/** Converts an error caused by the file to an ImageError; returns other errors unchanged. */
function asDiskError(error: unknown): unknown {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof ImageError && (cause.code === 'image-missing' || cause.code === 'image-changed'))
      return new CloudError('image-missing-on-disk', cause.message, { cause: error });
  }
  return error;
}

/** An open image file. Digests that are not known are computed while it is sent. */
export class FileData implements ImageData {
  readonly path: string;
  readonly size: number;
  readonly #source: HashedReader;
  readonly #options: FileDataOptions;
  /** True if the digests are known without reading the file again. */
  #isRead: boolean;

  constructor(file: ImageFile, source: HashedReader, options: FileDataOptions) {
    this.path = file.path;
    this.size = file.size;
    this.#isRead = file.checksums !== undefined;
    this.#source = source;
    this.#options = options;
  }

  readonly body = (start = 0, end: number = this.size): AsyncIterable<Buffer> => {
    const { onProgress, limit, signal } = this.#options;
    const { size: total } = this;
    const pieces = end - start === total ? this.#pieces() : rangeOf(this.path, start, end);
    let done = start;
    const onBytes = (bytes: number): void => {
      done += bytes;
      onProgress({ done: Math.min(done, total - 1), total }); // The upload ends when the image is active.
    };
    return metered(pieces, { onBytes, limit, signal });
  };

  /** Returns the digests from the build, or else of the sent bytes. Reads the file if only ranges were sent. */
  async checksums(): Promise<Checksums> {
    if (!this.#isRead) for await (const piece of this.#pieces()) void piece;
    return await this.#source.checksums;
  }

  #pieces(): AsyncIterable<Buffer> {
    this.#isRead = true;
    return this.#source.pieces();
  }
}

async function* rangeOf(path: string, start: number, end: number): AsyncGenerator<Buffer> {
  const file = await SteadyFile.open(path);
  try {
    for (let at = start; at < end; at += PIECE) {
      yield await file.read(Buffer.allocUnsafe(Math.min(PIECE, end - at)), at);
    }
    await file.check();
  } finally {
    await file.close();
  }
}
