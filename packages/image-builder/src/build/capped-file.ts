import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { Writable } from 'node:stream';

/** Bytes that are copied at a time. */
const PIECE = 1024 * 1024;

/**
 * Appends lines to a file. When the file has grown beyond `limit` bytes, the middle is cut out: of the limit, a quarter at
 * the beginning and a quarter at the end stay.
 */
export class CappedFile extends Writable {
  readonly #handle: FileHandle;
  readonly #limit: number;
  #size: number;
  /** Offset of the cut, once the middle has been removed. */
  #head: number | undefined;
  #removed = 0;
  /** Line that replaces the middle. */
  #notice: Buffer = Buffer.alloc(0);

  private constructor(handle: FileHandle, size: number, limit: number) {
    super();
    this.#handle = handle;
    this.#size = size;
    this.#limit = limit;
  }

  /** Opens a file, or makes it with this mode. */
  static async open(path: string, mode: number, limit: number): Promise<CappedFile> {
    const handle = await open(path, constants.O_RDWR | constants.O_CREAT, mode);
    try {
      return new CappedFile(handle, (await handle.stat()).size, limit);
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error) => void): void {
    void tell(this.#append(chunk), done);
  }

  override _writev(chunks: readonly { readonly chunk: Buffer }[], done: (error?: Error) => void): void {
    void tell(this.#append(Buffer.concat(chunks.map(({ chunk }) => chunk))), done);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    void tell(this.#handle.close(), (fault) => done(error ?? fault ?? null));
  }

  async #append(text: Buffer): Promise<void> {
    await this.#writeAt(this.#size, text);
    this.#size += text.length;
    if (this.#size > this.#limit) await this.#cut();
  }

  async #cut(): Promise<void> {
    const part = Math.floor(this.#limit / 4);
    const tailStart = this.#size - part;
    this.#head ??= await this.#lineEnd(part, 'before');
    const tail = await this.#lineEnd(tailStart, 'after');
    this.#removed += tail - this.#head - this.#notice.length;
    this.#notice = Buffer.from(
      `# ${this.#removed} bytes are left out here: the log reached its limit of ${this.#limit} bytes\n`,
    );
    const end = await this.#move(tail, this.#head + this.#notice.length);
    await this.#writeAt(this.#head, this.#notice);
    await this.#handle.truncate(end);
    this.#size = end;
  }

  /** The line end that is nearest to a position; the position itself if that is in a very long line. */
  async #lineEnd(position: number, where: 'before' | 'after'): Promise<number> {
    const length = Math.min(PIECE, Math.floor(this.#limit / 8));
    const start = where === 'before' ? position - length : position;
    const text = await this.#read(start, length);
    const found = where === 'before' ? text.lastIndexOf('\n') : text.indexOf('\n');
    return found === -1 ? position : start + found + 1;
  }

  /** Moves everything from `from` on to a lower position. Returns the new end. */
  async #move(from: number, to: number): Promise<number> {
    let target = to;
    for (let source = from; source < this.#size; source += PIECE) {
      const piece = await this.#read(source, Math.min(PIECE, this.#size - source));
      await this.#writeAt(target, piece);
      target += piece.length;
    }
    return target;
  }

  async #read(position: number, length: number): Promise<Buffer> {
    const { buffer, bytesRead } = await this.#handle.read(Buffer.alloc(length), 0, length, position);
    return buffer.subarray(0, bytesRead);
  }

  async #writeAt(position: number, text: Buffer): Promise<void> {
    for (let written = 0; written < text.length; ) {
      const rest = text.length - written;
      written += (await this.#handle.write(text, written, rest, position + written)).bytesWritten;
    }
  }
}

/** Calls a callback with the outcome of `work`. */
async function tell(work: Promise<void>, done: (error?: Error) => void): Promise<void> {
  const fault = await work.then(
    () => undefined,
    (error: Error) => error,
  );
  done(fault);
}
