import { ImageError } from '../errors.ts';
import type { ImageFile } from '../types.ts';
import type { DiskInformation } from './disk-information.ts';

/**
 * Refuses an image whose header refers to other files (a backing file, a data file, extents): qemu-img would copy
 * whatever file of this host it names into the result.
 *
 * @throws ImageError `conversion-failed`
 */
export function checkSelfContained({ path }: ImageFile, information: DiskInformation): void {
  const data = information['format-specific']?.data;
  const names = [
    information['full-backing-filename'],
    data?.['data-file'],
    ...(data?.extents ?? []).map((extent) => extent.filename),
  ];
  const foreign = names.find((name) => name !== undefined && name !== path);
  if (foreign === undefined) return;
  throw new ImageError(
    'conversion-failed',
    `"${path}" refers to another file, "${foreign}", and is not converted; flatten it with "qemu-img convert"`,
  );
}
