import { createHash } from 'node:crypto';

const MEBIBYTE = 1_048_576;
const SECTOR = 512;

/** Size of the footer, in bytes. */
export const FOOTER_SIZE = 512;

/** Min size of an uploaded disk, in bytes without the footer. */
const MIN_DISK_SIZE = 20 * MEBIBYTE;

/** Offset of the checksum in the footer. */
const CHECKSUM_AT = 64;

/** Seconds from the Unix epoch to the VHD epoch, 2000-01-01. */
const EPOCH = 946_684_800;

/** Returns the disk size for a raw image in bytes: whole MiB, and at least the min size that Azure accepts. */
export function diskSize(rawSize: number): number {
  return Math.max(MIN_DISK_SIZE, Math.ceil(rawSize / MEBIBYTE) * MEBIBYTE);
}

/**
 * Returns the footer that turns a raw disk into a fixed-size VHD.
 *
 * @param size disk size in bytes, in whole MiB
 * @param seed text whose digest becomes the unique id of the disk, so that a retry sends the same footer
 * @param createdAt creation time of the disk
 */
export function vhdFooter(size: number, seed: string, createdAt: Date): Buffer {
  const footer = Buffer.alloc(FOOTER_SIZE);
  footer.write('conectix', 0, 'latin1');
  footer.writeUInt32BE(2, 8); // features: the reserved bit, which is always set
  footer.writeUInt32BE(0x0001_0000, 12); // format version
  footer.writeBigUInt64BE(0xffff_ffff_ffff_ffffn, 16); // no dynamic header
  footer.writeUInt32BE(Math.max(0, Math.floor(createdAt.getTime() / 1000) - EPOCH), 24);
  footer.write('win ', 28, 'latin1'); // creator: like Hyper-V, so that readers ignore the geometry
  footer.writeUInt32BE(0x0006_0003, 32); // creator version
  footer.write('Wi2k', 36, 'latin1'); // creator host
  footer.writeBigUInt64BE(BigInt(size), 40); // original size
  footer.writeBigUInt64BE(BigInt(size), 48); // current size
  const { cylinders, heads, sectors } = geometry(size);
  footer.writeUInt16BE(cylinders, 56);
  footer.writeUInt8(heads, 58);
  footer.writeUInt8(sectors, 59);
  footer.writeUInt32BE(2, 60); // disk type: fixed
  createHash('sha256').update(seed).digest().copy(footer, 68, 0, 16);
  footer.writeUInt32BE(checksum(footer), CHECKSUM_AT);
  return footer;
}

/** Computes the one's complement of the sum of all bytes except the checksum. */
function checksum(footer: Buffer): number {
  let sum = 0;
  for (const [index, byte] of footer.entries()) {
    if (index < CHECKSUM_AT || index >= CHECKSUM_AT + 4) sum += byte;
  }
  return ~sum >>> 0;
}

/** Computes cylinders, heads and sectors per track, as in the appendix of the VHD specification. */
function geometry(size: number): { cylinders: number; heads: number; sectors: number } {
  const total = Math.min(Math.floor(size / SECTOR), 65_535 * 16 * 255);
  if (total >= 65_535 * 16 * 63) return { cylinders: Math.floor(total / 255 / 16), heads: 16, sectors: 255 };
  let sectors = 17;
  let tracks = Math.floor(total / sectors);
  let heads = Math.max(4, Math.ceil(tracks / 1024));
  if (tracks >= heads * 1024 || heads > 16) {
    sectors = 31;
    heads = 16;
    tracks = Math.floor(total / sectors);
  }
  if (tracks >= heads * 1024) {
    sectors = 63;
    heads = 16;
    tracks = Math.floor(total / sectors);
  }
  return { cylinders: Math.floor(tracks / heads), heads, sectors };
}
