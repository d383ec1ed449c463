import { createHash } from 'node:crypto';

const MEBIBYTE = 1_048_576;
const SECTOR = 512;

/** Length of the footer, in bytes. */
export const FOOTER_SIZE = 512;

/** Smallest disk that can be uploaded, in bytes without the footer. */
const SMALLEST_DISK = 20 * MEBIBYTE;

/** Offset of the footer's checksum. */
const CHECKSUM_AT = 64;

/** Seconds from the Unix epoch to that of VHDs, 2000-01-01. */
const EPOCH = 946_684_800;

/** Size of the disk for a raw image, in bytes: whole MiB, and at least the smallest that Azure accepts. */
export function diskSize(rawSize: number): number {
  return Math.max(SMALLEST_DISK, Math.ceil(rawSize / MEBIBYTE) * MEBIBYTE);
}

/**
 * Returns the footer that makes a raw disk a VHD of fixed size.
 *
 * @param size of the disk in bytes, in whole MiB
 * @param seed whose digest is the disk's unique id, so that a retry sends the same footer
 * @param createdAt of the disk
 */
export function vhdFooter(size: number, seed: string, createdAt: Date): Buffer {
  const footer = Buffer.alloc(FOOTER_SIZE);
  footer.write('conectix', 0, 'latin1');
  footer.writeUInt32BE(2, 8); // features: the bit that is always set
  footer.writeUInt32BE(0x0001_0000, 12); // version of the format
  footer.writeBigUInt64BE(0xffff_ffff_ffff_ffffn, 16); // no dynamic header
  footer.writeUInt32BE(Math.max(0, Math.floor(createdAt.getTime() / 1000) - EPOCH), 24);
  footer.write('win ', 28, 'latin1'); // creator: as Hyper-V's, after which readers ignore the geometry
  footer.writeUInt32BE(0x0006_0003, 32); // its version
  footer.write('Wi2k', 36, 'latin1'); // its host
  footer.writeBigUInt64BE(BigInt(size), 40); // size at creation
  footer.writeBigUInt64BE(BigInt(size), 48); // size now
  const { cylinders, heads, sectors } = geometry(size);
  footer.writeUInt16BE(cylinders, 56);
  footer.writeUInt8(heads, 58);
  footer.writeUInt8(sectors, 59);
  footer.writeUInt32BE(2, 60); // fixed size
  createHash('sha256').update(seed).digest().copy(footer, 68, 0, 16);
  footer.writeUInt32BE(checksum(footer), CHECKSUM_AT);
  return footer;
}

/** Ones' complement of the sum of all bytes but those of the checksum. */
function checksum(footer: Buffer): number {
  let sum = 0;
  for (const [index, byte] of footer.entries()) {
    if (index < CHECKSUM_AT || index >= CHECKSUM_AT + 4) sum += byte;
  }
  return ~sum >>> 0;
}

/** Cylinders, heads and sectors per track, by the appendix of the VHD specification. */
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
