import { writeSync } from 'node:fs';
import { type FileHandle, open, readFile } from 'node:fs/promises';
import { unlessMissing } from '@nodepool-builder/image-builder/module-kit';

/** Bytes of an entry: the index, and the SHA-256 of the block. */
const ENTRY = 4 + 32;

/** SHA-256 of blocks by their index. */
export type BlockDigests = Map<number, Buffer>;

/** Reads a list of blocks; empty if there is none. An entry that a crash left half-written is left out. */
export async function readBlockList(path: string): Promise<BlockDigests> {
  return parseBlockList((await unlessMissing(readFile(path))) ?? Buffer.alloc(0));
}

/** Reads the contents of a list of blocks. */
export function parseBlockList(bytes: Buffer): BlockDigests {
  const digests: BlockDigests = new Map();
  for (let at = 0; at + ENTRY <= bytes.length; at += ENTRY) {
    digests.set(bytes.readUInt32BE(at), bytes.subarray(at + 4, at + ENTRY));
  }
  return digests;
}

/**
 * A file that lists the blocks which the cloud has acknowledged. It is not forced to the disk: after a loss of power some
 * are sent again, and the digest of all blocks, which the cloud compares at the end, finds a damaged entry.
 */
export class BlockList implements AsyncDisposable {
  readonly #file: FileHandle;

  private constructor(file: FileHandle) {
    this.#file = file;
  }

  static async open(path: string): Promise<BlockList> {
    const file = await open(path, 'a');
    const { size } = await file.stat();
    await file.truncate(size - (size % ENTRY));
    return new BlockList(file);
  }

  /** Appends an entry at once: a few bytes for the page cache take less than handing them to another thread. */
  add(index: number, digest: Buffer): void {
    const entry = Buffer.alloc(ENTRY);
    entry.writeUInt32BE(index);
    digest.copy(entry, 4);
    writeSync(this.#file.fd, entry);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file.close();
  }
}

/** The contents of a list of blocks. */
export function blockListBytes(digests: ReadonlyMap<number, Buffer>): Buffer {
  const bytes = Buffer.alloc(digests.size * ENTRY);
  let at = 0;
  for (const [index, digest] of digests) {
    bytes.writeUInt32BE(index, at);
    digest.copy(bytes, at + 4);
    at += ENTRY;
  }
  return bytes;
}
