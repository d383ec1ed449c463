import { constants } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { Writable } from 'node:stream';
import { callbackify } from 'node:util';
import { openOwnFile } from '../ownership.ts';
import { writeAt } from '../sparse.ts';

/**
 * Appends lines to a file. When the file has grown beyond `limit` bytes, its middle is removed, so that a quarter of
 * the limit stays at the beginning and another at the end.
 */
export class CappedFile extends Writable {
  readonly #handle: FileHandle;
  readonly #limit: number;
  #size: number;
  /** Offset of the cut, once the middle has been removed. */
  #head: number | undefined;
  #removed = 0;
  /** Length of the line that replaces the middle. */
  #noticeLength = 0;

  private constructor(handle: FileHandle, size: number, limit: number) {
    super();
    this.#handle = handle;
    this.#size = size;
    this.#limit = limit;
  }

  /** Opens or creates a file, and sets its mode. */
  static async open(path: string, mode: number, limit: number): Promise<CappedFile> {
    const handle = await openOwnFile(path, constants.O_RDWR | constants.O_CREAT, mode);
    try {
      const { size, mode: present } = await handle.stat();
      if ((present & 0o7777) !== mode) await handle.chmod(mode);
      return new CappedFile(handle, size, limit);
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    callbackify(() => this.#append(chunk))(done);
  }

  override _writev(
    chunks: readonly { readonly chunk: Buffer }[],
    done: (error?: Error | null) => void,
  ): void {
    callbackify(() => this.#append(Buffer.concat(chunks.map(({ chunk }) => chunk))))(done);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    callbackify(() => this.#handle.close())((closing) => done(error ?? closing));
  }

  async #append(text: Buffer): Promise<void> {
    await writeAt(this.#handle, text, this.#size);
    this.#size += text.length;
    if (this.#size > this.#limit) await this.#cut();
  }

  /** Cuts at line ends, unless a line is longer than an eighth of the limit. */
  async #cut(): Promise<void> {
    const part = Math.floor(this.#limit / 4);
    const half = Math.floor(part / 2);
    this.#head ??= half + ((await this.#read(half, half)).lastIndexOf('\n') + 1 || half);
    const end = await this.#read(this.#size - part, part);
    const tail = end.subarray(end.subarray(0, half).indexOf('\n') + 1);
    this.#removed += this.#size - tail.length - this.#head - this.#noticeLength;
    const notice = `# ${this.#removed} bytes are missing here: the log reached its limit of ${this.#limit} bytes\n`;
    const kept = Buffer.concat([Buffer.from(notice), tail]);
    // The old tail stays until the new one is written, because this process may die in between.
    await writeAt(this.#handle, kept, this.#head);
    this.#size = this.#head + kept.length;
    await this.#handle.truncate(this.#size);
    this.#noticeLength = kept.length - tail.length;
  }

  async #read(position: number, length: number): Promise<Buffer> {
    const { buffer, bytesRead } = await this.#handle.read(Buffer.alloc(length), 0, length, position);
    return buffer.subarray(0, bytesRead);
  }
}
