import type { Hash } from 'node:crypto';
import { ImageError } from './errors.ts';
import { Digester } from './hashed-reader/digester.ts';
import { SteadyFile } from './hashed-reader/steady-file.ts';
import type { Checksums, OperationOptions } from './types.ts';

/** Settings of {@link HashedReader.open}. `onProgress` counts bytes. */
export interface HashedReaderOptions extends OperationOptions {
  /** Known checksums of the file. Default: they are computed while it is read. */
  readonly checksums?: Checksums | undefined;
  /** True if the file may be removed while it is read. Default false. */
  readonly mayBeRemoved?: boolean;
}

/** A file that is read once, for an upload and for its checksums. Threads of the process compute them. */
export class HashedReader {
  /** Size in bytes. */
  readonly size: number;
  /**
   * Resolves before the last piece is yielded. Rejects if the file cannot be read or changes meanwhile, or if the
   * reader is closed before its end was read.
   */
  readonly checksums: Promise<Checksums>;
  readonly #file: SteadyFile;
  readonly #options: HashedReaderOptions;
  readonly #digesters = new Set<Digester>();
  readonly #outcome = Promise.withResolvers<Checksums>();
  #isHashed: boolean;
  #isClosed = false;

  /**
   * Opens a file. The caller closes the reader.
   *
   * @throws ImageError `image-missing`, `directory-not-usable`; the signal's reason
   */
  static async open(path: string, options: HashedReaderOptions = {}): Promise<HashedReader> {
    options.signal?.throwIfAborted();
    return new HashedReader(await SteadyFile.open(path, options.mayBeRemoved), options);
  }

  private constructor(file: SteadyFile, options: HashedReaderOptions) {
    this.#file = file;
    this.#options = options;
    this.size = file.size;
    this.checksums = this.#outcome.promise;
    this.checksums.catch(() => {}); // a caller may ignore the checksums
    this.#isHashed = options.checksums !== undefined;
    if (options.checksums !== undefined) this.#outcome.resolve(options.checksums);
  }

  /**
   * Yields the file from its beginning, at least one piece. The memory of a piece is reused when the next one is
   * requested, so await each write. Reading is as fast as the slowest consumer, one piece ahead of it. A second call
   * reads the file again, but hashes it only once.
   *
   * @throws ImageError `image-changed`, `image-missing`, never after the last piece; `read-aborted` if the reader is
   * closed meanwhile; the signal's reason
   */
  async *pieces(): AsyncGenerator<Buffer, void, undefined> {
    const { signal, onProgress } = this.#options;
    const digester = new Digester(this.size, !this.#isHashed);
    this.#digesters.add(digester);
    let done = 0;
    let next = this.#readAhead(digester, done);
    try {
      do {
        const piece = await next;
        signal?.throwIfAborted();
        if (this.#isClosed) throw this.#aborted();
        done += piece.length;
        if (done < this.size) next = this.#readAhead(digester, done);
        else await this.#finish(digester);
        onProgress?.({ done, total: this.size });
        yield piece;
      } while (done < this.size);
    } catch (error) {
      const reason = this.#isClosed ? this.#aborted() : error;
      this.#outcome.reject(reason);
      throw reason;
    } finally {
      await Promise.allSettled([next]); // no read may fill a slot after the memory was released
      this.#digesters.delete(digester);
      await digester.close();
    }
  }

  /** @throws ImageError `image-changed` unless the file still has the content with which it was opened */
  async check(): Promise<void> {
    await this.#file.check();
  }

  /** Ends all readings and releases all resources. Call it when no piece is in use. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#outcome.reject(this.#aborted());
    await this.#file.close(); // after this, no read fills a slot
    await Promise.all(Array.from(this.#digesters, (digester) => digester.close()));
  }

  #readAhead(digester: Digester, position: number): Promise<Buffer> {
    const read = async (): Promise<Buffer> => {
      const slot = await digester.slot();
      const bytes = await this.#file.read(slot.bytes, position);
      void digester.update(slot, bytes.length);
      return bytes;
    };
    const piece = read();
    piece.catch(() => {}); // handled when the piece is requested, possibly much later
    return piece;
  }

  async #finish(digester: Digester): Promise<void> {
    await this.check();
    if (this.#isHashed) return;
    this.#outcome.resolve(await digester.digest());
    this.#isHashed = true;
  }

  #aborted(): ImageError {
    const { path } = this.#file;
    return new ImageError('read-aborted', `"${path}" was closed before its end was read; read it again`);
  }
}

/**
 * Reads a file once for its checksums. `onProgress` counts bytes.
 *
 * @throws ImageError `image-changed`, `image-missing`, `directory-not-usable`
 * @throws the signal's reason
 */
export async function checksumsOf(path: string, options: OperationOptions = {}): Promise<Checksums> {
  const reader = await HashedReader.open(path, options);
  try {
    for await (const _ of reader.pieces());
    return await reader.checksums;
  } finally {
    await reader.close();
  }
}

/** Yields the pieces, and adds them to a hash. */
export async function* hashed(
  pieces: AsyncIterable<Buffer>,
  hash: Hash,
): AsyncGenerator<Buffer, void, undefined> {
  for await (const piece of pieces) {
    hash.update(piece);
    yield piece;
  }
}
