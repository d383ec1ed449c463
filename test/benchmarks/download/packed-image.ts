import { execFile } from 'node:child_process';
import { stat, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { BenchmarkContext } from '../benchmark.ts';

const GIB = 2 ** 30;

/** Fills half of the image with system files, which compress like an image’s files; the rest is a hole. */
const MAKE_IMAGE = `
  while tar --create --file=- --directory=/ usr; do :; done 2>/dev/null | head --bytes="$2" > "$1"
  truncate --size="$(($2 * 2))" "$1"
  zstd --quiet --threads=0 --rm "$1"
`;

/** Disk space in GiB for the archive, its source, curl's output and our download. */
const NEEDED = 8 * GIB;

/** Raw image in the page cache, compressed as image jobs compress it. */
export interface PackedImage {
  /** Path below the directory. */
  readonly name: string;
  /** Size of the compressed file in bytes. */
  readonly packed: number;
}

/**
 * Creates `image.raw.zst` in a directory.
 *
 * @param size size of the unpacked image in bytes
 */
export async function packedImage(
  directory: string,
  size: number,
  { signal, progress }: BenchmarkContext,
): Promise<PackedImage> {
  const { bavail, bsize } = await statfs(directory);
  if (bavail * bsize < NEEDED) {
    throw new Error(
      `downloads need ${NEEDED / GIB} GiB in ${directory}; free disk space, or set TMPDIR to another directory`,
    );
  }
  progress(`making and packing an image of ${size / 2 ** 20} MiB`);
  const path = join(directory, 'image.raw');
  await promisify(execFile)('sh', ['-c', MAKE_IMAGE, 'sh', path, String(size / 2)], { signal });
  return { name: 'image.raw.zst', packed: (await stat(`${path}.zst`)).size };
}
