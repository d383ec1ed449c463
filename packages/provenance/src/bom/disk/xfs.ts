import { type ByteSource, slice, UnreadableImage } from '../byte-source.ts';
import { type Extent, MOST_EXTENTS, sourceOfExtents } from './extents.ts';
import type { FileSystem, Inode } from './file-system.ts';

// https://mirrors.edge.kernel.org/pub/linux/utils/fs/xfs/docs/xfs_filesystem_structure.pdf

const MAGIC = 'XFSB';
const INODE_MAGIC = 'IN';

/** Formats of the data in an inode: in the inode itself, a list of extents, a tree of extents. */
const LOCAL = 1;
const EXTENTS = 2;
const TREE = 3;

/** Flag of directories whose entries have the type of the file, without which positions differ: version 4 and 5. */
const V4_FILE_TYPE = 0x200;
const V5_FILE_TYPE = 0x1;
/** Features of version 5: file types, sparse inodes, UUIDs, large times, large counts, exchanges, parent pointers. */
const KNOWN_FEATURES = 0x1 | 0x2 | 0x4 | 0x8 | 0x20 | 0x40 | 0x80;
/** Flag of an inode with its number of extents in a field of 64 bits. */
const LARGE_COUNTS = 0x10;

const KINDS: Readonly<Record<number, Inode['kind']>> = { 4: 'directory', 8: 'file', 10: 'link' };

/** Position in a directory behind its entries, where its index begins. */
const DIRECTORY_DATA_END = 32 * 2 ** 30;

/** Upper bounds for damaged file systems. */
const DEEPEST_TREE = 8;
const LARGEST_DIRECTORY = 32 * 2 ** 20;
const LONGEST_TARGET = 4096;

/** Geometry of a file system. */
interface Geometry {
  readonly blockSize: number;
  readonly blocksLog: number;
  readonly groupBlocks: number;
  readonly groupLog: number;
  readonly inodeSize: number;
  readonly inodesLog: number;
  readonly directoryBlock: number;
  readonly isVersion5: boolean;
  readonly hasFileTypes: boolean;
  readonly root: number;
}

/** Files of an XFS file system. */
export class XfsFileSystem implements FileSystem {
  readonly type: string = 'XFS';
  readonly #source: ByteSource;
  readonly #geometry: Geometry;

  /**
   * Returns undefined if the source has no such file system.
   *
   * @throws UnreadableImage
   */
  static async open(source: ByteSource): Promise<XfsFileSystem | undefined> {
    if (source.size < 1024) return undefined;
    const superblock = await source.read(0, 512);
    if (superblock.toString('latin1', 0, 4) !== MAGIC) return undefined;
    const system = new XfsFileSystem(source, geometryOf(superblock));
    await system.#checkLog(superblock);
    return system;
  }

  private constructor(source: ByteSource, geometry: Geometry) {
    this.#source = source;
    this.#geometry = geometry;
  }

  async root(): Promise<Inode> {
    return await this.#inode(this.#geometry.root);
  }

  /** Refuses a file system that was not unmounted. @throws UnreadableImage */
  async #checkLog(superblock: Buffer): Promise<void> {
    const start = Number(superblock.readBigUInt64BE(48));
    if (start === 0) throw new UnreadableImage('its XFS file system has its log on another disk');
    const size = superblock.readUInt32BE(96) * this.#geometry.blockSize;
    if (!(await isClean(slice(this.#source, this.#position(start), size)))) {
      throw new UnreadableImage('its XFS file system was not unmounted, so that it may be out of date');
    }
  }

  /** Position of a block, whose number has the group in its upper bits. */
  #position(block: number): number {
    const { groupLog, groupBlocks, blockSize } = this.#geometry;
    const group = Math.floor(block / 2 ** groupLog);
    return (group * groupBlocks + (block % 2 ** groupLog)) * blockSize;
  }

  async #inode(number: number): Promise<Inode> {
    const { inodesLog, inodeSize } = this.#geometry;
    const position = this.#position(Math.floor(number / 2 ** inodesLog));
    const inode = await this.#source.read(position + (number % 2 ** inodesLog) * inodeSize, inodeSize);
    if (inode.toString('latin1', 0, 2) !== INODE_MAGIC) throw damaged();
    const kind = KINDS[inode.readUInt16BE(2) >> 12] ?? 'other';
    const size = Number(inode.readBigUInt64BE(56));
    return {
      kind,
      content: async () => sourceOfExtents(this.#source, size, await this.#extents(inode)),
      target: async () => await this.#target(inode, size),
      entry: async (name) => {
        const found = await this.#find(inode, size, Buffer.from(name));
        return found === undefined ? undefined : await this.#inode(found);
      },
    };
  }

  /** The data of an inode between its fixed fields and its extended attributes. */
  #fork(inode: Buffer): Buffer {
    const begin = this.#geometry.isVersion5 ? 176 : 100;
    const attributes = inode.readUInt8(82) * 8;
    const end = attributes === 0 ? inode.length : begin + attributes;
    if (end > inode.length) throw damaged();
    return inode.subarray(begin, end);
  }

  async #extents(inode: Buffer): Promise<readonly Extent[]> {
    const fork = this.#fork(inode);
    const found: Extent[] = [];
    const format = inode.readUInt8(5);
    if (format === EXTENTS) {
      const isLarge = this.#geometry.isVersion5 && (inode.readUInt32BE(124) & LARGE_COUNTS) !== 0;
      const count = isLarge ? Number(inode.readBigUInt64BE(24)) : inode.readUInt32BE(76);
      this.#readRecords(fork, 0, count, found);
    } else if (format === TREE) {
      const level = fork.readUInt16BE(0);
      const most = Math.floor((fork.length - 4) / 16);
      await this.#readChildren(fork, 4 + most * 8, fork.readUInt16BE(2), level, found);
    } else {
      throw damaged();
    }
    return found;
  }

  async #readChildren(
    node: Buffer,
    pointers: number,
    count: number,
    level: number,
    found: Extent[],
  ): Promise<void> {
    if (level < 1 || level > DEEPEST_TREE || pointers + count * 8 > node.length) throw damaged();
    const head = this.#geometry.isVersion5 ? 72 : 24;
    for (let index = 0; index < count; index += 1) {
      const block = this.#position(Number(node.readBigUInt64BE(pointers + index * 8)));
      const child = await this.#source.read(block, this.#geometry.blockSize);
      const magic = child.toString('latin1', 0, 4);
      if ((magic !== 'BMAP' && magic !== 'BMA3') || child.readUInt16BE(4) !== level - 1) throw damaged();
      const entries = child.readUInt16BE(6);
      if (level === 1) {
        this.#readRecords(child, head, entries, found);
      } else {
        const most = Math.floor((child.length - head) / 16);
        await this.#readChildren(child, head + most * 8, entries, level - 1, found);
      }
    }
  }

  /** Extents of 128 bits: a flag for reserved blocks, the position in the file, the block, the count. */
  #readRecords(bytes: Buffer, start: number, count: number, found: Extent[]): void {
    const { blockSize } = this.#geometry;
    if (start + count * 16 > bytes.length || found.length > MOST_EXTENTS) throw damaged();
    for (let at = start; at < start + count * 16; at += 16) {
      const [high, low] = [bytes.readBigUInt64BE(at), bytes.readBigUInt64BE(at + 8)];
      const block = ((high & 0x1ffn) << 43n) | (low >> 21n);
      found.push({
        logical: Number((high >> 9n) & 0x3fffffffffffffn) * blockSize,
        physical: high >> 63n === 1n ? undefined : this.#position(Number(block)),
        length: Number(low & 0x1fffffn) * blockSize,
      });
    }
  }

  async #target(inode: Buffer, size: number): Promise<string> {
    if (size > LONGEST_TARGET) throw damaged();
    if (inode.readUInt8(5) === LOCAL) return this.#fork(inode).toString('utf8', 0, size);
    const { blockSize } = this.#geometry;
    const parts: Buffer[] = [];
    let missing = size;
    for (const { physical, length } of await this.#extents(inode)) {
      if (physical === undefined) throw damaged();
      for (let at = 0; at < length && missing > 0; at += blockSize) {
        const block = await this.#source.read(physical + at, blockSize);
        // The kernel writes a header in version 5; mkfs.xfs 6.1 does not.
        const head = block.toString('latin1', 0, 4) === 'XSLM' ? 56 : 0;
        const part = block.subarray(head, head + missing);
        parts.push(part);
        missing -= part.length;
      }
    }
    return Buffer.concat(parts).toString();
  }

  async #find(inode: Buffer, size: number, name: Buffer): Promise<number | undefined> {
    if (inode.readUInt8(5) === LOCAL) return this.#findShort(this.#fork(inode), name);
    const extents = (await this.#extents(inode)).filter(({ logical }) => logical < DIRECTORY_DATA_END);
    const end = Math.max(0, ...extents.map(({ logical, length }) => logical + length));
    if (size > LARGEST_DIRECTORY || end > LARGEST_DIRECTORY) throw damaged();
    const data = sourceOfExtents(this.#source, end, extents);
    const { directoryBlock } = this.#geometry;
    for (let position = 0; position + directoryBlock <= end; position += directoryBlock) {
      const found = this.#findInBlock(await data.read(position, directoryBlock), name);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** A small directory lies in its inode. */
  #findShort(fork: Buffer, name: Buffer): number | undefined {
    const numberLength = fork.readUInt8(1) === 0 ? 4 : 8;
    let at = 2 + numberLength;
    for (let index = 0; index < fork.readUInt8(0); index += 1) {
      const length = fork.readUInt8(at);
      const number = at + 3 + length + (this.#geometry.hasFileTypes ? 1 : 0);
      if (fork.subarray(at + 3, at + 3 + length).equals(name)) return inodeNumber(fork, number, numberLength);
      at = number + numberLength;
    }
    return undefined;
  }

  /** A block of entries and free spaces; a single one has its index at the end. */
  #findInBlock(block: Buffer, name: Buffer): number | undefined {
    const magic = block.toString('latin1', 0, 4);
    if (!['XD2B', 'XD2D', 'XDB3', 'XDD3'].includes(magic)) return undefined;
    const isSingle = magic === 'XD2B' || magic === 'XDB3';
    const end = isSingle ? block.length - 8 - block.readUInt32BE(block.length - 8) * 8 : block.length;
    for (let at = this.#geometry.isVersion5 ? 64 : 16; at + 8 < end; ) {
      if (block.readUInt16BE(at) === 0xffff) {
        const free = block.readUInt16BE(at + 2);
        if (free === 0) throw damaged();
        at += free;
        continue;
      }
      const length = block.readUInt8(at + 8);
      if (block.subarray(at + 9, at + 9 + length).equals(name)) return inodeNumber(block, at, 8);
      const used = 8 + 1 + length + (this.#geometry.hasFileTypes ? 1 : 0) + 2;
      at += Math.ceil(used / 8) * 8;
    }
    return undefined;
  }
}

const SECTOR = 512;
const RECORD_MAGIC = 0xfeedbabe;
const UNMOUNT = 0x20;
/** Bytes of a record for which its header has one sector. */
const BYTES_PER_HEADER = 32_768;
const PIECE = 4 * 2 ** 20;

/** Whether the latest record of a log is that of an unmount. */
async function isClean(log: ByteSource): Promise<boolean> {
  let latest = { number: -1n, operation: 0 };
  for (let start = 0; start < log.size; start += PIECE) {
    const piece = await log.read(start, Math.min(PIECE, log.size - start));
    for (let at = 0; at + SECTOR <= piece.length; at += SECTOR) {
      if (piece.readUInt32BE(at) !== RECORD_MAGIC) continue;
      const number = piece.readBigUInt64BE(at + 16);
      const isVersion2 = piece.readUInt32BE(at + 8) !== 1;
      const headers = isVersion2 ? Math.ceil(piece.readUInt32BE(at + 320) / BYTES_PER_HEADER) : 1;
      const operation = start + at + Math.max(1, headers) * SECTOR;
      if (number > latest.number) latest = { number, operation };
    }
  }
  if (latest.number === -1n) return true; // a log that was never written to
  // An operation has an id, a length, a client and its flags.
  const operation = await log.read(latest.operation % log.size, 12);
  return (operation.readUInt8(9) & UNMOUNT) !== 0;
}

function geometryOf(superblock: Buffer): Geometry {
  const version = superblock.readUInt16BE(100) & 0xf;
  const isVersion5 = version === 5;
  if (version !== 4 && !isVersion5) throw new UnreadableImage('its XFS file system is older than version 4');
  const features = isVersion5 ? superblock.readUInt32BE(216) : 0;
  if ((features & ~KNOWN_FEATURES) !== 0) {
    throw new UnreadableImage('its XFS file system has features that are not supported');
  }
  const blocksLog = superblock.readUInt8(120);
  const [inodeLog, inodesLog, groupLog] = [122, 123, 124].map((at) => superblock.readUInt8(at));
  const directoryLog = superblock.readUInt8(192);
  const blockSize = superblock.readUInt32BE(4);
  const isSound = blockSize === 2 ** blocksLog && blocksLog >= 9 && blocksLog <= 16 && directoryLog <= 7;
  if (!isSound || inodeLog === undefined || inodesLog === undefined || groupLog === undefined)
    throw damaged();
  if (inodeLog < 8 || inodeLog > 11 || inodesLog > 8 || groupLog > 31) throw damaged();
  return {
    blockSize,
    blocksLog,
    groupBlocks: superblock.readUInt32BE(84),
    groupLog,
    inodeSize: 2 ** inodeLog,
    inodesLog,
    directoryBlock: blockSize * 2 ** directoryLog,
    isVersion5,
    hasFileTypes: isVersion5
      ? (features & V5_FILE_TYPE) !== 0
      : (superblock.readUInt32BE(200) & V4_FILE_TYPE) !== 0,
    root: Number(superblock.readBigUInt64BE(56)),
  };
}

function inodeNumber(bytes: Buffer, position: number, length: number): number {
  return length === 4 ? bytes.readUInt32BE(position) : Number(bytes.readBigUInt64BE(position));
}

function damaged(): UnreadableImage {
  return new UnreadableImage('its XFS file system is damaged');
}
