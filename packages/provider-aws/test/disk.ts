import { createHash } from 'node:crypto';
import { open, readFile } from 'node:fs/promises';
import type { UploadRequest } from '@nodepool-builder/image-builder';
import { BLOCK_SIZE } from '../../../test/doubles/aws/snapshots.ts';

/** Writes a sparse raw image with a byte in each block that has data. */
export async function writeDisk(
  path: string,
  blocks: Readonly<Record<number, string>>,
  length = 64,
): Promise<void> {
  const file = await open(path, 'w');
  await file.truncate(length * BLOCK_SIZE);
  for (const [index, character] of Object.entries(blocks)) {
    await file.write(Buffer.alloc(BLOCK_SIZE, character), 0, undefined, Number(index) * BLOCK_SIZE);
  }
  await file.close();
}

/** Returns the SHA-256 of a file's nonzero blocks, in base64, by index. */
export async function digestsOf(path: string): Promise<Map<number, string>> {
  const bytes = await readFile(path);
  const digests = new Map<number, string>();
  for (let index = 0; index * BLOCK_SIZE < bytes.length; index++) {
    const block = bytes.subarray(index * BLOCK_SIZE, (index + 1) * BLOCK_SIZE);
    if (block.some((byte) => byte !== 0))
      digests.set(index, createHash('sha256').update(block).digest('base64'));
  }
  return digests;
}

export const ZERO_BLOCK: string = createHash('sha256').update(Buffer.alloc(BLOCK_SIZE)).digest('base64');

export function requestFor(path: string, number = 1): UploadRequest {
  return {
    uploadId: `u${number}`,
    imageId: `debian-000000000${number}`,
    imageName: 'debian',
    file: { format: 'raw', path, size: 64 * BLOCK_SIZE },
  };
}
