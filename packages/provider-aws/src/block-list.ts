import { writeSync } from 'node:fs';
import { type FileHandle, open, readFile } from 'node:fs/promises';
import { unlessMissing } from '@nodepool-builder/image-builder/internal';

/** Size of an entry in bytes: the index and the SHA-256 of the block. */
const ENTRY = 4 + 32;

/** SHA-256 digests of blocks, by block index. */
export type BlockDigests = Map<number, Buffer>;

/** Reads a block list; empty if the file is missing. Skips an entry that a crash left half-written. */
export async function readBlockList(path: string): Promise<BlockDigests> {
  return parseBlockList((await unlessMissing(readFile(path))) ?? Buffer.alloc(0));
}

/** Parses a block list. */
export function parseBlockList(bytes: Buffer): BlockDigests {
  const digests: BlockDigests = new Map();
  for (let at = 0; at + ENTRY <= bytes.length; at += ENTRY) {
    digests.set(bytes.readUInt32BE(at), bytes.subarray(at + 4, at + ENTRY));
  }
  return digests;
}

/**
 * File that lists the blocks which the cloud has acknowledged. It is not synced to disk. After a power loss some blocks
 * are sent again, and a damaged entry is detected when the cloud compares the digest of all blocks at the end.
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

  /**
   * Appends an entry synchronously, because writing a few bytes to the page cache is faster than a thread pool call.
   */
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

/** Serializes a block list. */
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
