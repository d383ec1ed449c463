import { mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { UploadRequest } from '@nodepool-builder/image-builder';
import { checksumsOf } from '@nodepool-builder/image-builder/internal';

/** Size of a block in bytes. */
export const BLOCK: number = 4 * 1_048_576;

/** Writes a sparse disk with data in some blocks of 4 MiB, and returns a request for it. */
export async function diskRequest(
  t: TestContext,
  blocks: readonly number[],
  size: number = 10 * BLOCK,
  others: Partial<UploadRequest> = {},
): Promise<UploadRequest> {
  const directory = await mkdtemp(join(tmpdir(), 'azure-'));
  t.after(() => rm(directory, { recursive: true, force: true }));
  const path = join(directory, 'disk.raw');
  const file = await open(path, 'w');
  try {
    await file.truncate(size);
    for (const index of blocks)
      await file.write(Buffer.alloc(1000, 65 + (index % 26)), 0, 1000, index * BLOCK + 7);
  } finally {
    await file.close();
  }
  return {
    uploadId: 'u1',
    imageId: 'debian-1',
    imageName: 'debian',
    builtAt: new Date('2026-05-01T10:00:00Z'),
    file: { format: 'raw', path, size, checksums: await checksumsOf(path) },
    ...others,
  };
}
