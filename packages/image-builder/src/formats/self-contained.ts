import { ImageError } from '../errors.ts';
import { formatRow } from '../formats.ts';
import { readDiskHeader } from './disk-header.ts';
import type { DiskFile } from './disk-information.ts';

/** Characters of a name in a header that an error shows: the header is untrusted. */
const LONGEST_NAME = 200;

/**
 * Refuses an image whose header names other files (a backing file, a data file, extents, a parent). QEMU would open
 * them and copy their content into the result, even a secret of this host, or wait for a FIFO. The header is read in
 * this process.
 *
 * @param backingFile the only file that the header may name
 * @throws ImageError `image-not-self-contained`, `image-missing`, `directory-not-usable`
 */
export async function checkSelfContained(
  { path }: Pick<DiskFile, 'path'>,
  backingFile?: string,
): Promise<void> {
  const { references } = await readDiskHeader(path);
  refuseReferences(path, references, backingFile);
}

/**
 * Refuses files that are unsafe for qemu-img: an image that names other files, and a file without a header of its
 * format. A raw image has no header: all of it is data.
 *
 * @throws ImageError `image-not-self-contained`, `conversion-failed`, `image-missing`, `directory-not-usable`
 */
export async function checkDisk({ format, path }: DiskFile, backingFile?: string): Promise<void> {
  const { driver, references } = await readDiskHeader(path);
  const { qemuDriver } = formatRow(format);
  if (qemuDriver === 'raw') return;
  refuseReferences(path, references, backingFile);
  if (driver === qemuDriver) return;
  throw new ImageError(
    'conversion-failed',
    `"${path}" is not a ${format} image: it has no header of that format; correct the format, or build it again`,
  );
}

function refuseReferences(
  path: string,
  references: readonly string[],
  backingFile: string | undefined,
): void {
  const foreign = references.find((name) => name !== backingFile);
  if (foreign === undefined) return;
  const name = JSON.stringify(foreign.slice(0, LONGEST_NAME));
  throw new ImageError(
    'image-not-self-contained',
    `"${path}" names another file, ${name}, which could be any file of this host; flatten it with "qemu-img convert"`,
  );
}
