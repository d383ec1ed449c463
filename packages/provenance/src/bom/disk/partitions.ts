import { type ByteSource, slice } from '../byte-source.ts';

const SECTOR = 512;

/** Position of the four entries in a master boot record, and the length of each. */
const MBR_TABLE = 446;
const MBR_ENTRY = 16;

/** Types of MBR partitions that contain no file system: empty, extended, and the placeholder of a GPT. */
const EMPTY = 0;
const EXTENDED: ReadonlySet<number> = new Set([0x05, 0x0f, 0x85]);
const PROTECTIVE = 0xee;

/** Upper bounds for damaged tables. */
const MOST_GPT_ENTRIES = 1024;
const LONGEST_GPT_ENTRY = 4096;
const MOST_LOGICAL_PARTITIONS = 64;

/** Parts of a disk that may contain file systems, the largest first. A disk without a partition table is one part. */
export async function partitionsOf(disk: ByteSource): Promise<readonly ByteSource[]> {
  if (disk.size < SECTOR) return [];
  const record = await disk.read(0, SECTOR);
  if (record.readUInt16LE(510) !== 0xaa55) return [disk];
  const entries = mbrEntries(record);
  const found: ByteSource[] = [];
  for (const { type, start, size } of entries) {
    if (type === PROTECTIVE) found.push(...(await gptPartitions(disk)));
    else if (EXTENDED.has(type)) found.push(...(await logicalPartitions(disk, start)));
    else found.push(...part(disk, start, size));
  }
  // The boot sector of a file system without a partition table also ends with this signature.
  return found.length === 0 ? [disk] : found.toSorted((a, b) => b.size - a.size);
}

interface Entry {
  readonly type: number;
  /** Bytes. */
  readonly start: number;
  readonly size: number;
}

function mbrEntries(record: Buffer): Entry[] {
  return [0, 1, 2, 3]
    .map((index) => record.subarray(MBR_TABLE + index * MBR_ENTRY, MBR_TABLE + (index + 1) * MBR_ENTRY))
    .map((entry) => ({
      type: entry.readUInt8(4),
      start: entry.readUInt32LE(8) * SECTOR,
      size: entry.readUInt32LE(12) * SECTOR,
    }))
    .filter(({ type, start, size }) => type !== EMPTY && start > 0 && size > 0);
}

/** A chain of records, each with one partition, whose position counts from the record. */
async function logicalPartitions(disk: ByteSource, extended: number): Promise<ByteSource[]> {
  const found: ByteSource[] = [];
  let position: number | undefined = extended;
  while (position !== undefined && found.length < MOST_LOGICAL_PARTITIONS) {
    if (position + SECTOR > disk.size) break;
    const at: number = position;
    const entries = mbrEntries(await disk.read(at, SECTOR));
    const [logical] = entries.filter(({ type }) => !EXTENDED.has(type));
    if (logical === undefined) break;
    found.push(...part(disk, at + logical.start, logical.size));
    const next = entries.find(({ type }) => EXTENDED.has(type));
    position = next && extended + next.start;
  }
  return found;
}

/** UEFI 2.10, section 5.3. Disks of cloud images have sectors of 512 bytes, others of 4096. */
async function gptPartitions(disk: ByteSource): Promise<ByteSource[]> {
  for (const sector of [SECTOR, 4096]) {
    if (disk.size < 2 * sector) continue;
    const header = await disk.read(sector, SECTOR);
    if (header.toString('latin1', 0, 8) !== 'EFI PART') continue;
    const table = Number(header.readBigUInt64LE(72)) * sector;
    const count = Math.min(header.readUInt32LE(80), MOST_GPT_ENTRIES);
    const length = header.readUInt32LE(84);
    if (length < 128 || length > LONGEST_GPT_ENTRY || table + count * length > disk.size) continue;
    const entries = await disk.read(table, count * length);
    return Array.from({ length: count }, (_, index) => entries.subarray(index * length, (index + 1) * length))
      .filter((entry) => entry.subarray(0, 16).some((byte) => byte !== 0))
      .flatMap((entry) => {
        const [first, last] = [32, 40].map((at) => Number(entry.readBigUInt64LE(at)));
        return part(disk, (first ?? 0) * sector, ((last ?? 0) - (first ?? 0) + 1) * sector);
      });
  }
  return [];
}

/** A partition that lies within the disk, up to the end of the disk. */
function part(disk: ByteSource, start: number, size: number): ByteSource[] {
  const inside = Math.min(size, disk.size - start);
  return start > 0 && inside > 0 && Number.isSafeInteger(start) ? [slice(disk, start, inside)] : [];
}
