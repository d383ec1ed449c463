import { ImageError } from '../errors.ts';
import type { DiskFile, DiskInformation } from './disk-information.ts';

/**
 * Refuses an image whose header refers to other files (a backing file, a data file, extents): qemu-img would copy
 * whatever file of this host it names into the result.
 *
 * @param backingFile the one that it may refer to.
 * @throws ImageError `conversion-failed`
 */
export function checkSelfContained(
  { path }: Pick<DiskFile, 'path'>,
  information: DiskInformation,
  backingFile?: string,
): void {
  const data = information['format-specific']?.data;
  const names = [
    information['full-backing-filename'],
    data?.['data-file'],
    ...(data?.extents ?? []).map((extent) => extent.filename),
  ];
  const foreign = names.find((name) => name !== undefined && name !== path && name !== backingFile);
  if (foreign === undefined) return;
  throw new ImageError(
    'conversion-failed',
    `"${path}" refers to another file, "${foreign}", and is not converted; flatten it with "qemu-img convert"`,
  );
}
