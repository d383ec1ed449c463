import { type FileHandle, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import {
  STATE_FILE,
  unlessAborted,
  unlessMissing,
  writeSparse,
} from '@nodepool-builder/image-builder/module-kit';
import { BLOCK_SIZE, Blocks, type Run } from './blocks.ts';
import { Journal, type ObjectIdentity } from './journal.ts';

/**
 * An object on the disk as its server stores it, in blocks that come in any order. It is read in order, at the same
 * time; a reader waits for blocks that are not there yet.
 */
export class Spool {
  readonly path: string;
  /** Known once the server has told it, or the end has come. */
  size: number | undefined;
  readonly #blocks: Blocks;
  readonly #file: FileHandle;
  readonly #journal: Journal | undefined;

  private constructor(
    path: string,
    size: number | undefined,
    file: FileHandle,
    blocks: Blocks,
    journal?: Journal,
  ) {
    this.path = path;
    this.size = size;
    this.#file = file;
    this.#blocks = blocks;
    this.#journal = journal;
  }

  /** The spool of an object in a directory, with what of that object is there already. */
  static async resume(directory: string, identity: ObjectIdentity): Promise<Spool> {
    const path = join(directory, 'stored');
    const journalPath = join(directory, 'journal');
    const file = await unlessMissing(open(path, 'r+'));
    const present = await Journal.read(journalPath, identity);
    if (file !== undefined && present !== undefined) {
      const journal = await Journal.continue(journalPath);
      return new Spool(path, identity.size, file, new Blocks(present), journal);
    }
    await file?.close();
    await rm(journalPath, { force: true }); // before the file that it speaks of is emptied
    const empty = await open(path, 'w+', STATE_FILE);
    return new Spool(path, identity.size, empty, new Blocks(), await Journal.begin(journalPath, identity));
  }

  /** An empty spool, of whose content nothing will be left to another process. */
  static async begin(directory: string, size: number | undefined): Promise<Spool> {
    await rm(join(directory, 'journal'), { force: true });
    const path = join(directory, 'stored');
    return new Spool(path, size, await open(path, 'w+', STATE_FILE), new Blocks());
  }

  /** Bytes that are there, up to a block more or less. */
  get present(): number {
    return this.#blocks.count * BLOCK_SIZE;
  }

  /**
   * The next bytes to fetch of an object whose size is known, for one who fetches; undefined if there are none.
   *
   * @param most blocks
   */
  claim(most: number): Run | undefined {
    const { size = 0 } = this;
    const run = this.#blocks.claim(Math.ceil(size / BLOCK_SIZE), most);
    return run && { begin: run.begin * BLOCK_SIZE, end: Math.min(run.end * BLOCK_SIZE, size) };
  }

  /** Gives back what was claimed and did not come. */
  release({ begin, end }: Run): void {
    this.#blocks.release({ begin: begin / BLOCK_SIZE, end: Math.ceil(end / BLOCK_SIZE) });
  }

  /** Stores the block that begins at a position. */
  async write(bytes: Buffer, position: number): Promise<void> {
    const block = position / BLOCK_SIZE;
    await writeSparse(this.#file, bytes, position);
    await this.#journal?.add(block);
    // Only the last one is short. A reader that waits for it has to know where it ends.
    if (bytes.length < BLOCK_SIZE) this.size = position + bytes.length;
    this.#blocks.add(block);
  }

  /** Says where an object ends of which nobody knew it, for one that ends with a whole block. */
  end(size: number): void {
    this.size = size;
    this.#blocks.add(Math.ceil(size / BLOCK_SIZE)); // which a reader waits for
  }

  /**
   * The object from its beginning, in pieces whose memory is filled anew once the next one is asked for.
   *
   * @throws the signal's reason
   */
  async *pieces(signal: AbortSignal): AsyncGenerator<Buffer, void, undefined> {
    const memory = Buffer.allocUnsafe(BLOCK_SIZE);
    for (let position = 0; this.size === undefined || position < this.size; ) {
      await unlessAborted(this.#blocks.wait(position / BLOCK_SIZE), signal);
      // Only now: the size may have become known meanwhile.
      const length = Math.min(BLOCK_SIZE, (this.size ?? Number.POSITIVE_INFINITY) - position);
      if (length === 0) return;
      await this.#fill(memory.subarray(0, length), position);
      yield memory.subarray(0, length);
      position += length;
    }
  }

  /** Ends the file with its last byte, which may lie in a hole. */
  async truncate(): Promise<void> {
    await this.#file.truncate(this.size);
  }

  async close(): Promise<void> {
    await this.#file.close();
    await this.#journal?.close();
  }

  /** What lies behind the file's end is a hole, still. */
  async #fill(memory: Buffer, position: number): Promise<void> {
    for (let filled = 0; filled < memory.length; ) {
      const { bytesRead } = await this.#file.read(memory, filled, memory.length - filled, position + filled);
      if (bytesRead === 0) memory.fill(0, filled);
      filled += bytesRead === 0 ? memory.length : bytesRead;
    }
  }
}
