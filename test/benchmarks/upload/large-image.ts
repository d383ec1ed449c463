import { randomFillSync } from 'node:crypto';
import { mkdtemp, open, rm, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BenchmarkContext } from '../benchmark.ts';

const GIB = 2 ** 30;

/** Size of an image in bytes: one half is random, the other a hole, as file systems leave it. */
export const IMAGE_SIZE: number = 2 * GIB;

/** The size as text. */
export const IMAGE_LENGTH: string = `${IMAGE_SIZE / GIB} GiB`;

const BLOCK = Buffer.alloc(64 * 2 ** 20);

/** Disk space in GiB for the image and three copies in a cloud. A conversion takes less. */
const NEEDED = 8 * GIB;

/**
 * Creates a raw image, which is removed after the benchmark. It is on the disk and in the page cache, so that neither
 * writing it nor reading it for the first time is measured.
 */
export async function largeImage({ signal, after, progress }: BenchmarkContext): Promise<string> {
  const { bavail, bsize } = await statfs(tmpdir());
  if (bavail * bsize < NEEDED) {
    const needed = NEEDED / GIB;
    throw new Error(
      `images need ${needed} GiB in ${tmpdir()}; free disk space, or set TMPDIR to another directory`,
    );
  }
  progress(`making an image of ${IMAGE_LENGTH}`);
  const directory = await mkdtemp(join(tmpdir(), 'bench-upload-'));
  after(() => rm(directory, { recursive: true }));
  const path = join(directory, 'image.raw');
  const file = await open(path, 'w+');
  try {
    for (let position = 0; position < IMAGE_SIZE / 2; position += BLOCK.length) {
      signal.throwIfAborted();
      await file.write(randomFillSync(BLOCK), 0, BLOCK.length, position);
    }
    await file.truncate(IMAGE_SIZE);
    await file.sync();
    for (let position = 0; position < IMAGE_SIZE; position += BLOCK.length) {
      await file.read(BLOCK, 0, BLOCK.length, position);
    }
  } finally {
    await file.close();
  }
  return path;
}
