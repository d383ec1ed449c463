import { execFile } from 'node:child_process';
import { randomFillSync } from 'node:crypto';
import { type FileHandle, mkdtemp, open, rm, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { BenchmarkContext } from '../benchmark.ts';

const MIB = 2 ** 20;
const GIB = 2 ** 30;

/** Size of the disk and of its random data in bytes: 64 extents, which begin in the middle of a block. */
export const DISK_GIB = 8;
const DISK = DISK_GIB * GIB;
const DATA = GIB;
const PIECES = 64;
const OFFSET = 20 * 1024;

/** Zero bytes that the file stores, as an installation leaves them: they are not a hole, but need not be sent. */
const STORED_ZEROS = 256 * MIB;

/** Fraction of the data blocks that the second build changes. */
const CHANGED = 0.05;

/** Disk space in GiB for both builds. */
const NEEDED = 4 * GIB;

/** Block of a disk that is not zero. */
export interface BlockSummary {
  readonly index: number;
}

/** Two builds of a raw image of {@link DISK_LENGTH}. */
export interface SparseDisks {
  readonly first: string;
  readonly second: string;
  /** Data blocks in the first build. */
  readonly blocks: readonly BlockSummary[];
  /** Number of blocks that differ in the second build. */
  readonly changed: number;
}

/** Sizes of the disks and of their data, as text. */
export const DISK_LENGTH: string = `${DISK / GIB} GiB with ${DATA / GIB} GiB of data`;

/** Creates two builds in the page cache, which are removed after the benchmark. */
export async function sparseDisks(
  { signal, after, progress }: BenchmarkContext,
  blockSize: number,
): Promise<SparseDisks> {
  const { bavail, bsize } = await statfs(tmpdir());
  if (bavail * bsize < NEEDED) {
    const needed = NEEDED / GIB;
    throw new Error(
      `images need ${needed} GiB in ${tmpdir()}; free disk space, or set TMPDIR to another directory`,
    );
  }
  progress(`making two images of ${DISK_LENGTH}`);
  const directory = await mkdtemp(join(tmpdir(), 'bench-upload-'));
  after(() => rm(directory, { recursive: true }));
  const [first, second] = [join(directory, 'first.raw'), join(directory, 'second.raw')];
  const piece = Buffer.alloc(DATA / PIECES);
  await withFile(first, 'w+', async (file) => {
    await file.truncate(DISK);
    for (let index = 0; index < PIECES; index += 1) {
      signal.throwIfAborted();
      const position = (index * DISK) / PIECES + OFFSET;
      await file.write(randomFillSync(piece), 0, piece.length, position);
      await file.write(
        Buffer.alloc(STORED_ZEROS / PIECES),
        0,
        STORED_ZEROS / PIECES,
        position + 2 * piece.length,
      );
    }
    await file.sync();
  });
  const blocks = blocksWithData(blockSize, piece.length);
  await promisify(execFile)('cp', ['--sparse=auto', '--reflink=auto', first, second], { signal });
  const step = Math.round(1 / CHANGED);
  const changed = blocks.filter((_, number) => number % step === 0);
  await withFile(second, 'r+', async (file) => {
    for (const { index } of changed)
      await file.write(randomFillSync(Buffer.alloc(4096)), 0, 4096, index * blockSize);
    await file.sync();
  });
  return { first, second, blocks, changed: changed.length };
}

/** Returns the blocks with data. */
function blocksWithData(blockSize: number, pieceSize: number): BlockSummary[] {
  const blocks: BlockSummary[] = [];
  for (let piece = 0; piece < PIECES; piece += 1) {
    const start = (piece * DISK) / PIECES + OFFSET;
    const last = Math.floor((start + pieceSize - 1) / blockSize);
    for (let index = Math.floor(start / blockSize); index <= last; index += 1) blocks.push({ index });
  }
  return blocks;
}

async function withFile(
  path: string,
  flags: string,
  work: (file: FileHandle) => Promise<void>,
): Promise<void> {
  const file = await open(path, flags);
  try {
    await work(file);
  } finally {
    await file.close();
  }
}
