import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ImageError, type ImageFile } from '@nodepool-builder/image-builder';
import { DirectoryProvider } from '../../src/directory/directory-provider.ts';

/** An empty directory with its provider, and image files next to it. */
export class DirectorySite {
  readonly root: string;
  readonly pool: string;
  /** Provider, which tests may replace to change settings. */
  provider: DirectoryProvider;

  private constructor(root: string, pool: string) {
    this.root = root;
    this.pool = pool;
    this.provider = new DirectoryProvider({ name: 'pool', directory: pool });
  }

  static async create(): Promise<DirectorySite> {
    const root = await mkdtemp(join(tmpdir(), 'directory-provider-'));
    const pool = join(root, 'pool');
    await mkdir(pool);
    return new DirectorySite(root, pool);
  }

  async remove(): Promise<void> {
    await rm(this.root, { recursive: true });
  }

  /** Creates an image file that was built on the given day. */
  async imageFile(imageId: string, day: string, content = `image ${imageId}`): Promise<ImageFile> {
    const path = join(this.root, `${imageId}.qcow2`);
    await writeFile(path, content);
    await utimes(path, new Date(day), new Date(day));
    return { format: 'qcow2', path, size: content.length, checksums: checksumsOf(content) };
  }

  async upload(imageId: string, day: string, imageName = 'debian'): Promise<string> {
    const { externalId } = await this.provider.upload({
      uploadId: `upload-${imageId}`,
      imageId,
      imageName,
      file: await this.imageFile(imageId, day),
      metadata: { os: 'debian' },
    });
    return externalId;
  }
}

export function checksumsOf(content: string): { md5: string; sha256: string } {
  const digest = (algorithm: string): string => createHash(algorithm).update(content).digest('hex');
  return { md5: digest('md5'), sha256: digest('sha256') };
}

/** Returns the rejection reason of a promise. */
export async function errorOf(work: Promise<unknown>): Promise<ImageError> {
  const error = await work.then(
    () => assert.fail('it succeeded'),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof ImageError, String(error));
  return error;
}
