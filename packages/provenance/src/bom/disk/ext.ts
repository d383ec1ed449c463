import { type ByteSource, UnreadableImage } from '../byte-source.ts';
import { type Extent, MOST_EXTENTS, sourceOfExtents } from './extents.ts';
import type { FileSystem, Inode } from './file-system.ts';

// https://www.kernel.org/doc/html/latest/filesystems/ext4/

const SUPERBLOCK = 1024;
const MAGIC = 0xef53;
const ROOT_INODE = 2;

/** Features that change the layout of what is read here. */
const UNSUPPORTED = {
  1: 'compression',
  8: 'an external journal',
  16: 'meta_bg',
} as const;
const NEEDS_RECOVERY = 0x4;
const HAS_64BIT = 0x80;

const EXTENT_TREE = 0x80000;
const INLINE_DATA = 0x10000000;
const ENCRYPTED = 0x800;

const KINDS: Readonly<Record<number, Inode['kind']>> = { 4: 'directory', 8: 'file', 10: 'link' };

/** Upper bounds for damaged file systems. */
const DEEPEST_TREE = 5;
const LARGEST_DIRECTORY = 32 * 2 ** 20;
const LONGEST_TARGET = 4096;

/** Files of an ext2, ext3 or ext4 file system. */
export class ExtFileSystem implements FileSystem {
  readonly type: string = 'ext4';
  readonly #source: ByteSource;
  readonly #super: Buffer;
  readonly #blockSize: number;

  /** @returns undefined if the source has no such file system */
  static async open(source: ByteSource): Promise<ExtFileSystem | undefined> {
    if (source.size < 2 * SUPERBLOCK) return undefined;
    const superblock = await source.read(SUPERBLOCK, SUPERBLOCK);
    return superblock.readUInt16LE(56) === MAGIC ? new ExtFileSystem(source, superblock) : undefined;
  }

  private constructor(source: ByteSource, superblock: Buffer) {
    const incompatible = superblock.readUInt32LE(96);
    for (const [bit, name] of Object.entries(UNSUPPORTED)) {
      if ((incompatible & Number(bit)) !== 0) {
        throw new UnreadableImage(`its ext4 file system uses ${name}, which is not supported`);
      }
    }
    if ((incompatible & NEEDS_RECOVERY) !== 0) {
      throw new UnreadableImage('its ext4 file system was not unmounted, so that it may be out of date');
    }
    const log = superblock.readUInt32LE(24);
    if (log > 6 || superblock.readUInt32LE(40) === 0) throw damaged();
    this.#source = source;
    this.#super = superblock;
    this.#blockSize = 1024 << log;
  }

  async root(): Promise<Inode> {
    return await this.#inode(ROOT_INODE);
  }

  async #inode(number: number): Promise<Inode> {
    const perGroup = this.#super.readUInt32LE(40);
    if (number < 1 || number > this.#super.readUInt32LE(0)) throw damaged();
    const has64Bit = (this.#super.readUInt32LE(96) & HAS_64BIT) !== 0;
    const length = has64Bit ? Math.max(this.#super.readUInt16LE(254), 64) : 32;
    const group = Math.floor((number - 1) / perGroup);
    const groups = (this.#super.readUInt32LE(20) + 1) * this.#blockSize;
    const descriptor = await this.#source.read(groups + group * length, length);
    const high = has64Bit ? descriptor.readUInt32LE(40) : 0;
    const table = (high * 2 ** 32 + descriptor.readUInt32LE(8)) * this.#blockSize;
    const isOld = this.#super.readUInt32LE(76) === 0;
    const size = isOld ? 128 : this.#super.readUInt16LE(88);
    if (size < 128) throw damaged();
    const bytes = await this.#source.read(table + ((number - 1) % perGroup) * size, size);
    return this.#view(bytes);
  }

  #view(inode: Buffer): Inode {
    const content = (): Promise<ByteSource> => this.#content(inode);
    return {
      kind: KINDS[inode.readUInt16LE(0) >> 12] ?? 'other',
      content,
      target: async () => {
        const length = sizeOf(inode);
        if (length > LONGEST_TARGET) throw damaged();
        // A short target is in the place of the list of blocks.
        const isShort = length < 60 && (inode.readUInt32LE(32) & (EXTENT_TREE | INLINE_DATA)) === 0;
        const bytes = isShort ? inode.subarray(40, 40 + length) : await (await content()).read(0, length);
        return bytes.toString();
      },
      entry: async (name) => {
        const number = await this.#find(await content(), Buffer.from(name));
        return number === undefined ? undefined : await this.#inode(number);
      },
    };
  }

  /** Inode number of a directory's entry. The index of a large directory looks like free space between entries. */
  async #find(directory: ByteSource, name: Buffer): Promise<number | undefined> {
    if (directory.size > LARGEST_DIRECTORY) throw damaged();
    for (let position = 0; position < directory.size; position += this.#blockSize) {
      const block = await directory.read(position, this.#blockSize);
      for (let at = 0; at + 8 <= block.length; ) {
        const number = block.readUInt32LE(at);
        const length = block.readUInt16LE(at + 4);
        const nameLength = block.readUInt8(at + 6);
        if (number !== 0 && block.subarray(at + 8, at + 8 + nameLength).equals(name)) return number;
        // 0 and 65535 are the lengths of an entry that fills a block of 64 KiB.
        if (length < 8 || length % 4 !== 0) break;
        at += length;
      }
    }
    return undefined;
  }

  async #content(inode: Buffer): Promise<ByteSource> {
    const flags = inode.readUInt32LE(32);
    const size = sizeOf(inode);
    const blocks = inode.subarray(40, 100);
    if ((flags & ENCRYPTED) !== 0) throw new UnreadableImage('its list of packages is encrypted');
    if ((flags & INLINE_DATA) !== 0) {
      throw new UnreadableImage('its ext4 file system uses inline_data, which is not supported');
    }
    const extents: Extent[] = [];
    if ((flags & EXTENT_TREE) !== 0) await this.#readExtents(blocks, DEEPEST_TREE, extents);
    else await this.#readBlockMap(blocks, Math.ceil(size / this.#blockSize), extents);
    return sourceOfExtents(this.#source, size, extents);
  }

  async #readExtents(node: Buffer, levels: number, found: Extent[]): Promise<void> {
    const entries = node.readUInt16LE(2);
    const depth = node.readUInt16LE(6);
    const isSound = node.readUInt16LE(0) === 0xf30a && depth <= levels && 12 + entries * 12 <= node.length;
    if (!isSound || found.length > MOST_EXTENTS) throw damaged();
    for (let index = 1; index <= entries; index += 1) {
      const entry = node.subarray(index * 12, (index + 1) * 12);
      if (depth > 0) {
        const child = entry.readUInt16LE(8) * 2 ** 32 + entry.readUInt32LE(4);
        const block = await this.#source.read(child * this.#blockSize, this.#blockSize);
        if (block.readUInt16LE(6) !== depth - 1) throw damaged();
        await this.#readExtents(block, depth - 1, found);
      } else {
        const length = entry.readUInt16LE(4);
        // A greater length marks reserved blocks, whose content counts as zero.
        const physical = entry.readUInt16LE(6) * 2 ** 32 + entry.readUInt32LE(8);
        found.push({
          logical: entry.readUInt32LE(0) * this.#blockSize,
          physical: length > 32_768 ? undefined : physical * this.#blockSize,
          length: (length > 32_768 ? length - 32_768 : length) * this.#blockSize,
        });
      }
    }
  }

  /** The list of blocks of ext2 and ext3: 12 blocks, then blocks with lists of blocks, one to three levels deep. */
  async #readBlockMap(pointers: Buffer, count: number, found: Extent[]): Promise<void> {
    let logical = 0;
    const visit = async (block: number, level: number): Promise<void> => {
      if (logical >= count) return;
      if (level === 0 || block === 0) {
        if (block !== 0) this.#append(found, logical, block);
        logical += (this.#blockSize / 4) ** level;
        return;
      }
      const list = await this.#source.read(block * this.#blockSize, this.#blockSize);
      for (let at = 0; at < list.length; at += 4) await visit(list.readUInt32LE(at), level - 1);
    };
    for (let index = 0; index < 15; index += 1) {
      await visit(pointers.readUInt32LE(index * 4), Math.max(0, index - 11));
    }
  }

  #append(found: Extent[], block: number, physicalBlock: number): void {
    const logical = block * this.#blockSize;
    const physical = physicalBlock * this.#blockSize;
    const last = found.at(-1);
    if (
      last?.physical !== undefined &&
      last.physical + last.length === physical &&
      last.logical + last.length === logical
    ) {
      found[found.length - 1] = { ...last, length: last.length + this.#blockSize };
      return;
    }
    if (found.length > MOST_EXTENTS) throw damaged();
    found.push({ logical, physical, length: this.#blockSize });
  }
}

function sizeOf(inode: Buffer): number {
  return inode.readUInt32LE(108) * 2 ** 32 + inode.readUInt32LE(4);
}

function damaged(): UnreadableImage {
  return new UnreadableImage('its ext4 file system is damaged');
}
