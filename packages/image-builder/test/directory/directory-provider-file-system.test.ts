// Only in test:all: it mounts file systems, and needs xfsprogs.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { ImageFile } from '@nodepool-builder/image-builder';
import { checksumsOf, DirectorySite, errorOf } from './directory-site.ts';

let site: DirectorySite;

beforeEach(async () => {
  site = await DirectorySite.create();
});
afterEach(() => site.remove());

describe('the file system', () => {
  it('a full file system fails the upload with its name, and keeps no partial image', async () => {
    const content = 'x'.repeat(4 * 1024 * 1024);
    const file = await site.imageFile('0001', '2016-05-01', content);
    await onFileSystem(['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', site.pool], async () => {
      const error = await errorOf(
        site.provider.upload({ uploadId: 'u1', imageId: '0001', imageName: 'debian', file }),
      );
      assert.equal(error.code, 'disk-full');
      assert.match(error.message, /no space left.*free space there/i);
      assert.deepEqual(await readdir(site.pool), []);
    });
  });

  for (const shared of [false, true]) {
    const kind = shared ? 'a shared upload' : 'the upload';
    it(`a file system that fills up at the manifest fails ${kind}, and no file has the public name`, async () => {
      const content = 'x'.repeat(1024 * 1024);
      const file = await site.imageFile('0001', '2016-05-01', content);
      // The image fills the disk.
      await onFileSystem(['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', site.pool], async () => {
        const error = await errorOf(
          site.provider.upload({ uploadId: 'u1', imageId: '0001', imageName: 'debian', file, shared }),
        );
        assert.equal(error.code, 'disk-full');
        assert.deepEqual(await readdir(site.pool), []);
      });
    });
  }

  it('a file system with reflinks shares an image’s blocks', async () => {
    const disk = join(site.root, 'xfs');
    command('truncate', '--size=400M', disk);
    command('mkfs.xfs', '-q', disk);
    await onFileSystem(['-o', 'loop', disk, site.pool], async () => {
      const content = 'x'.repeat(4 * 1024 * 1024);
      const path = join(site.pool, 'built.qcow2');
      await writeFile(path, content);
      const file: ImageFile = {
        format: 'qcow2',
        path,
        size: content.length,
        checksums: checksumsOf(content),
      };
      const { externalId } = await site.provider.upload({
        uploadId: 'u1',
        imageId: '0001',
        imageName: 'debian',
        file,
      });
      assert.equal(await readFile(join(site.pool, externalId), 'utf8'), content);
      assert.match(command('filefrag', '-v', join(site.pool, externalId)), /shared/);
    });
  });
});

async function onFileSystem(mountArguments: readonly string[], work: () => Promise<void>): Promise<void> {
  command('mount', ...mountArguments);
  try {
    await work();
  } finally {
    command('umount', site.pool);
  }
}

function command(name: string, ...args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(name, args, { encoding: 'utf8' });
  assert.equal(status, 0, `${name}: ${stderr}`);
  return stdout;
}
