import { type Checksums, HashedReader, ImageError, type ImageFile } from '@nodepool-builder/image-builder';
import { type BandwidthLimit, metered } from '@nodepool-builder/image-builder/module-kit';
import type { ImageData } from '../image-api.ts';
import { OpenStackError } from '../openstack-error.ts';
import type { ByteProgress } from './byte-progress.ts';

/** What {@link FileData.open} takes. */
export interface FileDataOptions {
  readonly progress: ByteProgress;
  readonly limit: BandwidthLimit | undefined;
  /** Seconds. */
  readonly stallTimeout: number;
  readonly signal: AbortSignal;
}

/** A file on its way to a cloud. What is not known of it is digested while it goes out. */
export class FileData {
  readonly #file: ImageFile;
  readonly #source: HashedReader;
  readonly #options: FileDataOptions;
  #begun = false;

  private constructor(file: ImageFile, source: HashedReader, options: FileDataOptions) {
    this.#file = file;
    this.#source = source;
    this.#options = options;
  }

  /** @throws OpenStackError `image-missing-on-disk` */
  static async open(file: ImageFile, options: FileDataOptions): Promise<FileData> {
    try {
      const source = await HashedReader.open(file.path, {
        checksums: file.checksums,
        signal: options.signal,
      });
      if (source.size === file.size) return new FileData(file, source, options);
      await source.close();
      throw new ImageError(
        'image-changed',
        `"${file.path}" has ${source.size} bytes and not ${file.size}: it changed before its upload; build the image again`,
      );
    } catch (error) {
      throw asDiskError(error);
    }
  }

  /** For the wire. */
  get data(): ImageData {
    const { stallTimeout } = this.#options;
    return { size: this.#file.size, body: () => this.#body(), stallTimeout };
  }

  /** Known from its build, or once all of it went out, or else read now. */
  async checksums(): Promise<Checksums> {
    if (this.#file.checksums !== undefined) return this.#file.checksums;
    if (!this.#begun) await drain(this.#pieces());
    return await this.#source.checksums;
  }

  async close(): Promise<void> {
    await this.#source.close();
  }

  #body(): AsyncIterable<Buffer> {
    const { progress, limit, signal } = this.#options;
    let done = 0;
    const onBytes = (bytes: number): void => {
      done += bytes;
      progress.report(done);
    };
    return metered(this.#pieces(), { onBytes, limit, signal });
  }

  #pieces(): AsyncIterable<Buffer> {
    this.#begun = true;
    return this.#source.pieces();
  }
}

async function drain(pieces: AsyncIterable<Buffer>): Promise<void> {
  const reading = pieces[Symbol.asyncIterator]();
  while ((await reading.next()).done !== true);
}

/** An error of the file on disk in the words of this package, wherever in the chain of causes it is; else the error. */
export function asDiskError(error: unknown): unknown {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof ImageError && (cause.code === 'image-missing' || cause.code === 'image-changed'))
      return new OpenStackError('image-missing-on-disk', cause.message, { cause: error });
  }
  return error;
}
