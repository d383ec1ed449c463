import { execFile } from 'node:child_process';
import { stat, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { BenchmarkContext } from '../benchmark.ts';

const GIB = 2 ** 30;

/** Fills half of the image with files of this system, which compress like an image’s files; the rest is a hole. */
const MAKE_IMAGE = `
  while tar --create --file=- --directory=/ usr; do :; done 2>/dev/null | head --bytes="$2" > "$1"
  truncate --size="$(($2 * 2))" "$1"
  zstd --quiet --threads=0 --rm "$1"
`;

/** Disk space for the archive, its source, the output of curl's pipeline and our download. */
const NEEDED = 8 * GIB;

/** A raw image, compressed as image jobs do it, in the page cache. */
export interface PackedImage {
  /** Its path below the directory. */
  readonly name: string;
  /** Bytes of the packed file. */
  readonly packed: number;
}

/**
 * Makes `image.raw.zst` in a directory.
 *
 * @param size bytes of the unpacked image
 */
export async function packedImage(
  directory: string,
  size: number,
  { signal, progress }: BenchmarkContext,
): Promise<PackedImage> {
  const { bavail, bsize } = await statfs(directory);
  if (bavail * bsize < NEEDED) {
    throw new Error(
      `downloads need ${NEEDED / GIB} GiB in ${directory}; make room, or let TMPDIR name another place`,
    );
  }
  progress(`making and packing an image of ${size / 2 ** 20} MiB`);
  const path = join(directory, 'image.raw');
  await promisify(execFile)('sh', ['-c', MAKE_IMAGE, 'sh', path, String(size / 2)], { signal });
  return { name: 'image.raw.zst', packed: (await stat(`${path}.zst`)).size };
}
