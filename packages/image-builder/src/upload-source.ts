import { Readable } from 'node:stream';
import { ImageError } from './errors.ts';
import { steadyProgress } from './progress.ts';
import type { OperationOptions } from './types.ts';
import { createDigester } from './upload-source/create-digester.ts';
import type { DigestName, Digests } from './upload-source/digests.ts';
import type { HashThreads } from './upload-source/hash-threads.ts';
import { readPieces } from './upload-source/read-pieces.ts';
import { SteadyFile } from './upload-source/steady-file.ts';

/** Settings of {@link openUploadSource}. */
export interface UploadSourceOptions<Name extends DigestName> extends OperationOptions {
  /** Digests to compute while the file is read; default none. */
  readonly digests?: readonly Name[];
  /** Shared by all sources of a process, to limit the number of threads. Default: threads for this source. */
  readonly threads?: HashThreads;
  /** Whether the file may be removed while it is read. Default false. */
  readonly mayBeRemoved?: boolean;
}

/** A file that is read once, for an upload and for its digests. */
export class UploadSource<Name extends DigestName = never> {
  /** Size in bytes. */
  readonly size: number;
  /**
   * Fulfilled before the last piece is yielded. Rejected if the file cannot be read or changes meanwhile, or if the
   * source is closed before its end was read.
   */
  readonly digests: Promise<Digests<Name>>;
  readonly #file: SteadyFile;
  readonly #options: UploadSourceOptions<Name>;
  readonly #readings = new Set<AsyncGenerator<Buffer, void>>();
  readonly #outcome = Promise.withResolvers<Digests<Name>>();
  #digested = false;

  /** @internal */
  constructor(file: SteadyFile, options: UploadSourceOptions<Name>) {
    this.#file = file;
    this.#options = options;
    this.size = file.size;
    this.digests = this.#outcome.promise;
    this.digests.catch(() => {}); // a caller may ignore the digests
  }

  /**
   * Yields the file from its beginning. The memory of a piece is reused when the next one is requested, so await each
   * write. Reading is as fast as the slowest consumer. A second call reads the file again, but digests it only once.
   *
   * @throws ImageError `image-changed`, `image-missing`, never after the last piece; `read-aborted` if the source is
   *   closed meanwhile; the signal's reason
   */
  async *pieces(): AsyncGenerator<Buffer, void, undefined> {
    const reading = this.#read();
    this.#readings.add(reading);
    let given = 0;
    try {
      for await (const piece of reading) {
        given += piece.length;
        yield piece;
      }
    } finally {
      this.#readings.delete(reading);
    }
    if (given < this.size) throw this.#aborted();
  }

  /** Like {@link pieces}, but each chunk is a copy, for consumers that keep several of them. */
  stream(): Readable {
    return Readable.from(copies(this.pieces()), { objectMode: false });
  }

  /** Ends all readings and releases all resources. Call it when no piece is in use. */
  async close(): Promise<void> {
    this.#outcome.reject(this.#aborted());
    await Promise.all(Array.from(this.#readings, (reading) => reading.return()));
    await this.#file.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async *#read(): AsyncGenerator<Buffer, void, undefined> {
    const { digests = [], threads, signal, onProgress } = this.#options;
    const progress = onProgress && steadyProgress(onProgress);
    const digester = createDigester(this.#digested ? [] : digests, this.size, threads);
    let done = 0;
    try {
      for await (const piece of readPieces(this.#file, digester)) {
        signal?.throwIfAborted();
        done += piece.length;
        if (done === this.size && !this.#digested) {
          this.#outcome.resolve(await digester.digest());
          this.#digested = true;
        }
        progress?.({ done, total: this.size });
        yield piece;
      }
    } catch (error) {
      this.#outcome.reject(error);
      throw error;
    } finally {
      await digester.close();
    }
  }

  #aborted(): ImageError {
    const { path } = this.#file;
    return new ImageError('read-aborted', `"${path}" was closed before its end was read; read it again`);
  }
}

async function* copies(pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  for await (const piece of pieces) yield Buffer.from(piece);
}

/**
 * Opens a file for an upload. The caller closes the source.
 *
 * @throws ImageError `image-missing`, `directory-not-usable`; the signal's reason
 */
export async function openUploadSource<const Name extends DigestName = never>(
  path: string,
  options: UploadSourceOptions<Name> = {},
): Promise<UploadSource<Name>> {
  options.signal?.throwIfAborted();
  return new UploadSource(await SteadyFile.open(path, options), options);
}
