import { randomBytes } from 'node:crypto';
import { stat, writeFile } from 'node:fs/promises';
import type { ImageFormat, UploadRequest } from '@nodepool-builder/image-builder';
import { checksumsOf } from '@nodepool-builder/image-builder/internal';

/** Writes a file that compresses a little: random bytes and zeros. */
export async function writeDisk(path: string, mebibytes = 9): Promise<Buffer> {
  const pieces = Array.from({ length: mebibytes }, (_, index) =>
    index % 3 === 2 ? Buffer.alloc(2 ** 20) : randomBytes(2 ** 20),
  );
  const bytes = Buffer.concat([...pieces, Buffer.from('the end')]);
  await writeFile(path, bytes);
  return bytes;
}

export async function requestFor(
  path: string,
  number = 1,
  format: ImageFormat = 'qcow2',
): Promise<UploadRequest> {
  const { size } = await stat(path);
  return {
    uploadId: `u${number}`,
    imageId: `debian-000000000${number}`,
    imageName: 'debian',
    builtAt: new Date(Date.UTC(2026, 4, number)),
    file: { format, path, size, checksums: await checksumsOf(path) },
  };
}
