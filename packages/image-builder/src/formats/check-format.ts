import { open } from 'node:fs/promises';
import { ImageError } from '../errors.ts';
import { formatRow, type ImageFormat } from '../formats.ts';
import { readDiskHeader } from './disk-header.ts';
import type { DiskFile } from './disk-information.ts';

/** Maximum length of a header's name in an error, because the header is untrusted. */
const MAX_NAME_LENGTH = 200;

/** Signatures and their positions. Disks are recognised by their headers. An ACI may have any compression. */
const SIGNATURES: Readonly<Partial<Record<ImageFormat, readonly [position: number, bytes: string]>>> = {
  iso: [32_769, 'CD001'],
  tar: [257, 'ustar'],
  tgz: [0, '\x1f\x8b'],
  squashfs: [0, 'hsqs'],
};

/**
 * Refuses an image whose header names other files (a backing file, a data file, extents, a parent). QEMU would open
 * them and copy their content into the result, even a secret of this host, or wait for a FIFO. This process itself
 * reads the header.
 *
 * @throws ImageError `image-not-self-contained`, `image-missing`, `directory-not-usable`
 */
export async function checkSelfContained({ path }: Pick<DiskFile, 'path'>): Promise<void> {
  const { references } = await readDiskHeader(path);
  refuseReferences(path, references);
}

/**
 * Refuses files that are unsafe for qemu-img: an image that names other files, and a file without a header of its
 * format. A raw image has no header, because it consists only of data.
 *
 * @param backingFile the only file that the header may name
 * @throws ImageError `image-not-self-contained`, `conversion-failed`, `image-missing`, `directory-not-usable`
 */
export async function checkDisk({ format, path }: DiskFile, backingFile?: string): Promise<void> {
  const { driver, references } = await readDiskHeader(path);
  const { qemuDriver } = formatRow(format);
  if (qemuDriver === 'raw') return;
  refuseReferences(path, references, backingFile);
  if (driver !== qemuDriver) throw wrongFormat(path, format, 'it has no header of that format');
}

/**
 * Refuses a file that does not have the declared format. A raw disk may contain anything but the header of another
 * format.
 *
 * @throws ImageError like {@link checkDisk}
 */
export async function checkFormat({ format, path }: DiskFile): Promise<void> {
  const { driver } = await readDiskHeader(path);
  const { qemuDriver = 'raw' } = formatRow(format);
  if (qemuDriver !== 'raw') return await checkDisk({ format, path });
  if (driver !== undefined) throw wrongFormat(path, format, `it has the header of a ${driver} image`);
  const [position, signature] = SIGNATURES[format] ?? [0, ''];
  const file = await open(path, 'r');
  try {
    const { buffer } = await file.read(Buffer.alloc(signature.length), 0, signature.length, position);
    if (buffer.toString('latin1') !== signature)
      throw wrongFormat(path, format, 'it lacks the signature of that format');
  } finally {
    await file.close();
  }
}

function wrongFormat(path: string, format: ImageFormat, reason: string): ImageError {
  return new ImageError(
    'conversion-failed',
    `"${path}" is not a ${format} image: ${reason}; correct the format, or build it again`,
  );
}

function refuseReferences(path: string, references: readonly string[], backingFile?: string): void {
  const foreign = references.find((name) => name !== backingFile);
  if (foreign === undefined) return;
  const name = JSON.stringify(foreign.slice(0, MAX_NAME_LENGTH));
  throw new ImageError(
    'image-not-self-contained',
    `"${path}" names another file, ${name}, which could be any file of this host; flatten it with "qemu-img convert"`,
  );
}
