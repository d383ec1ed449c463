import { open } from 'node:fs/promises';
import { ImageError } from '../errors.ts';
import { formatRow, type ImageFormat } from '../formats.ts';
import { readDiskHeader } from './disk-header.ts';
import type { DiskFile } from './disk-information.ts';
import { checkDisk } from './self-contained.ts';

interface Signature {
  readonly position: number;
  readonly bytes: string;
}

/** Signatures of formats. Disks are recognised by their headers; an ACI may have any compression. */
const SIGNATURES: Readonly<Partial<Record<ImageFormat, Signature>>> = {
  iso: { position: 32_769, bytes: 'CD001' },
  tar: { position: 257, bytes: 'ustar' },
  tgz: { position: 0, bytes: '\x1f\x8b' },
  squashfs: { position: 0, bytes: 'hsqs' },
};

/**
 * Refuses a file that is not of the declared format. A raw disk may hold anything but the header of another
 * format.
 *
 * @throws ImageError `image-missing`, `conversion-failed`, `image-not-self-contained`, `directory-not-usable`
 */
export async function checkFormat({ format, path }: DiskFile): Promise<void> {
  const { driver } = await readDiskHeader(path);
  const { qemuDriver = 'raw' } = formatRow(format);
  if (qemuDriver !== 'raw') return await checkDisk({ format, path });
  if (driver !== undefined) throw wrongFormat(path, format, `it has the header of a ${driver} image`);
  const signature = SIGNATURES[format];
  if (signature === undefined) return;
  const { position, bytes } = signature;
  const file = await open(path, 'r');
  try {
    const { buffer } = await file.read(Buffer.alloc(bytes.length), 0, bytes.length, position);
    if (buffer.toString('latin1') !== bytes)
      throw wrongFormat(path, format, 'it lacks the signature of that format');
  } finally {
    await file.close();
  }
}

function wrongFormat(path: string, format: ImageFormat, reason: string): ImageError {
  return new ImageError(
    'conversion-failed',
    `"${path}" is not a ${format} image: ${reason}; correct the format`,
  );
}
