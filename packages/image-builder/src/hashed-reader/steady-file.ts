import { type BigIntStats, constants } from 'node:fs';
import { type FileHandle, open, stat } from 'node:fs/promises';
import { ImageError } from '../errors.ts';
import { UNTRICKED } from '../ownership.ts';
import { asImageError, errnoOf } from '../system-error.ts';

/** Error codes of open(2) for a symbolic link and for a socket or a device without a driver. */
const NOT_REGULAR: ReadonlySet<string> = new Set(['ELOOP', 'ENXIO', 'ENODEV']);

/** A regular file that must not change while it is read. */
export class SteadyFile {
  readonly path: string;
  /** Size in bytes, holes included. */
  readonly size: number;
  readonly #handle: FileHandle;
  readonly #state: BigIntStats;
  readonly #mayBeRemoved: boolean;

  /**
   * @param mayBeRemoved the file may be removed while it is read
   * @throws ImageError `image-missing`, `directory-not-usable`
   */
  static async open(path: string, mayBeRemoved = false): Promise<SteadyFile> {
    try {
      const handle = await open(path, constants.O_RDONLY | UNTRICKED);
      const state = await handle.stat({ bigint: true });
      if (state.isFile()) return new SteadyFile(path, handle, state, mayBeRemoved);
      await handle.close();
    } catch (error) {
      if (errnoOf(error) === 'ENOENT') throw missing(path, error);
      if (!NOT_REGULAR.has(errnoOf(error) ?? '')) throw asImageError(error, `reading "${path}"`);
    }
    throw new ImageError('image-missing', `"${path}" is not a regular file; name an image file`);
  }

  private constructor(path: string, handle: FileHandle, state: BigIntStats, mayBeRemoved: boolean) {
    this.path = path;
    this.size = Number(state.size);
    this.#handle = handle;
    this.#state = state;
    this.#mayBeRemoved = mayBeRemoved;
  }

  /**
   * Fills `bytes` from a position of the file, and returns the filled part. It is shorter only at the end of the file.
   *
   * @throws ImageError `image-changed` if the file ends before its size
   */
  async read(bytes: Buffer, position: number): Promise<Buffer> {
    const wanted = Math.max(0, Math.min(bytes.length, this.size - position));
    for (let length = 0; length < wanted; ) {
      const at = position + length;
      const { bytesRead } = await this.#handle.read(bytes, length, wanted - length, at);
      if (bytesRead === 0) throw changed(this.path, `it ends after ${at} of ${this.size} bytes`);
      length += bytesRead;
    }
    return bytes.subarray(0, wanted);
  }

  /** @throws ImageError `image-changed`, `image-missing` unless the file still has its name and its content */
  async check(): Promise<void> {
    const { dev, ino, size, mtimeNs } = this.#state;
    const now = await stat(this.path, { bigint: true }).catch(async (error: unknown) => {
      if (errnoOf(error) !== 'ENOENT') throw error;
      if (!this.#mayBeRemoved) throw missing(this.path, error);
      return await this.#handle.stat({ bigint: true });
    });
    if (now.dev !== dev || now.ino !== ino) throw changed(this.path, 'another file now has its name');
    if (now.size !== size) throw changed(this.path, `it had ${size} bytes and now has ${now.size}`);
    if (now.mtimeNs !== mtimeNs) throw changed(this.path, 'another process wrote to it');
  }

  /** Waits for pending reads. */
  close(): Promise<void> {
    return this.#handle.close();
  }
}

function changed(path: string, how: string): ImageError {
  return new ImageError(
    'image-changed',
    `"${path}" changed while it was read: ${how}; build a new image and do not write to it`,
  );
}

function missing(path: string, cause: unknown): ImageError {
  return new ImageError('image-missing', `"${path}" no longer exists; build the image again`, { cause });
}
