import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmod,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rm,
  stat,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { ImageError, type ImageFile } from '@nodepool-builder/image-builder';
import { DirectoryProvider } from '../../src/directory/directory-provider.ts';

let root: string;
let pool: string;
let provider: DirectoryProvider;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'directory-provider-'));
  pool = join(root, 'pool');
  await mkdir(pool);
  provider = new DirectoryProvider({ name: 'pool', directory: pool });
});
afterEach(() => rm(root, { recursive: true }));

/** An image file that was built at the given day. */
async function imageFile(imageId: string, day: string, content = `image ${imageId}`): Promise<ImageFile> {
  const path = join(root, `${imageId}.qcow2`);
  await writeFile(path, content);
  await utimes(path, new Date(day), new Date(day));
  return { format: 'qcow2', path, size: content.length, checksums: checksumsOf(content) };
}

function checksumsOf(content: string): { md5: string; sha256: string } {
  const digest = (algorithm: string): string => createHash(algorithm).update(content).digest('hex');
  return { md5: digest('md5'), sha256: digest('sha256') };
}

async function upload(imageId: string, day: string, imageName = 'debian'): Promise<string> {
  const file = await imageFile(imageId, day);
  const { externalId } = await provider.upload({
    uploadId: `upload-${imageId}`,
    imageId,
    imageName,
    file,
    metadata: { os: 'debian' },
  });
  return externalId;
}

async function errorOf(work: Promise<unknown>): Promise<ImageError> {
  const error = await work.then(
    () => assert.fail('it succeeded'),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof ImageError, String(error));
  return error;
}

describe('an upload to a directory', () => {
  for (const umask of [0, 0o22, 0o77]) {
    it(`leaves files that others read and only their owner writes, with umask 0${umask.toString(8)}`, async (t) => {
      const before = process.umask(umask);
      t.after(() => process.umask(before));
      const externalId = await upload('0001', '2016-05-01');
      for (const name of [externalId, `${externalId}.json`]) {
        assert.equal((await stat(join(pool, name))).mode & 0o777, 0o644, name);
        await chmod(join(pool, name), 0o666); // as an earlier release left it
      }
      await upload('0002', '2016-05-02');
      for (const name of [externalId, `${externalId}.json`]) {
        assert.equal((await stat(join(pool, name))).mode & 0o777, 0o644, name);
      }
    });
  }

  it('leaves the image, a manifest that verifies it, and the link to the latest', async () => {
    assert.equal(await upload('0001', '2016-05-01'), 'debian-0001.qcow2');
    assert.deepEqual((await readdir(pool)).toSorted(), [
      'debian-0001.qcow2',
      'debian-0001.qcow2.json',
      'debian-latest.qcow2',
    ]);
    assert.equal(await readFile(join(pool, 'debian-latest.qcow2'), 'utf8'), 'image 0001');
    const manifest = JSON.parse(await readFile(join(pool, 'debian-0001.qcow2.json'), 'utf8'));
    assert.deepEqual(
      { ...manifest, uploaded: undefined },
      {
        'image-id': '0001',
        'image-name': 'debian',
        'upload-id': 'upload-0001',
        format: 'qcow2',
        size: 'image 0001'.length,
        ...checksumsOf('image 0001'),
        built: '2016-05-01T00:00:00.000Z',
        uploaded: undefined,
        metadata: { os: 'debian' },
      },
    );
    assert.equal(
      spawnSync('sha256sum', ['-c'], { cwd: pool, input: `${manifest.sha256}  debian-0001.qcow2\n` }).status,
      0,
    );
  });

  it('keeps the link on the image that was built last, in whatever order they come and go', async () => {
    const latest = join(pool, 'debian-latest.qcow2');
    await Promise.all([
      upload('0002', '2016-05-02'),
      upload('0001', '2016-05-01'),
      upload('0009', '2016-05-09', 'centos'),
    ]);
    assert.equal(await readlink(latest), 'debian-0002.qcow2');
    await provider.delete('debian-0002.qcow2');
    assert.equal(await readlink(latest), 'debian-0001.qcow2');
    await provider.delete('debian-0001.qcow2');
    assert.deepEqual((await readdir(pool)).toSorted(), [
      'centos-0009.qcow2',
      'centos-0009.qcow2.json',
      'centos-latest.qcow2',
    ]);
  });

  it('refuses a file that is not what was built, and leaves nothing', async () => {
    const file = await imageFile('0001', '2016-05-01');
    await writeFile(file.path, 'damaged!!!');
    const error = await errorOf(
      provider.upload({ uploadId: 'u1', imageId: '0001', imageName: 'debian', file }),
    );
    assert.equal(error.code, 'provider-refused');
    assert.match(error.message, /0001\.qcow2 is not what the builder made.*build the image again/);
    assert.deepEqual(await readdir(pool), []);
  });

  it('refuses to put an image over another one of the same file name', async () => {
    await upload('b-c', '2016-05-01', 'a');
    const file = await imageFile('c', '2016-05-01');
    const error = await errorOf(provider.upload({ uploadId: 'u1', imageId: 'c', imageName: 'a-b', file }));
    assert.match(error.message, /a-b-c\.qcow2 is image b-c of a already/);
    assert.equal(await readFile(join(pool, 'a-b-c.qcow2'), 'utf8'), 'image b-c');
  });

  it('refuses an image name that is no file name', async () => {
    const file = await imageFile('c', '2016-05-01');
    const error = await errorOf(provider.upload({ uploadId: 'u1', imageId: 'c', imageName: '../up', file }));
    assert.equal(error.code, 'provider-refused');
    assert.deepEqual(await readdir(pool), []);
  });

  it('clears what a killed process of this host left, and nothing else', async () => {
    const { pid: dead } = spawnSync('true');
    const left = `.upload-${hostname()}.${dead}.00000000.part`;
    const others = [
      `.upload-${hostname()}.${process.ppid}.00000000.part`,
      '.upload-elsewhere.1.00000000.part',
      '.profile',
    ];
    for (const name of [left, ...others]) await writeFile(join(pool, name), 'half an image');
    await upload('0001', '2016-05-01');
    const hidden = (await readdir(pool)).filter((name) => name.startsWith('.'));
    assert.deepEqual(hidden.toSorted(), others.toSorted());
  });

  it('says what to do about a directory that is missing', async () => {
    await rm(pool, { recursive: true });
    const error = await errorOf(upload('0001', '2016-05-01'));
    assert.equal(error.code, 'directory-not-usable');
    assert.match(
      error.message,
      /provider pool: upload of debian-0001\.qcow2 in .* failed: .*; create the directory/,
    );
  });
});

describe('a deletion from a directory', () => {
  it('does not touch what is not ours', async () => {
    await writeFile(join(pool, 'handmade.qcow2'), 'precious');
    const error = await errorOf(provider.delete('handmade.qcow2'));
    assert.equal(error.code, 'provider-refused');
    assert.equal(await readFile(join(pool, 'handmade.qcow2'), 'utf8'), 'precious');
  });

  it('does not leave the directory', async () => {
    await writeFile(join(root, 'outside'), 'precious');
    await writeFile(join(root, 'outside.json'), '{}');
    await assert.rejects(provider.delete('../outside'), /contains a "\/"/);
    assert.equal(await readFile(join(root, 'outside'), 'utf8'), 'precious');
  });

  it('finishes what a crash left half done', async () => {
    await upload('0001', '2016-05-01');
    await rm(join(pool, 'debian-0001.qcow2'));
    assert.deepEqual(await provider.list(), []);
    await provider.delete('debian-0001.qcow2');
    assert.deepEqual(await readdir(pool), []);
  });
});

const skip = process.getuid?.() === 0 ? false : 'only root may mount';

describe('the file system below', { skip }, () => {
  it('that is full fails the upload by name, and keeps no half image', async () => {
    const content = 'x'.repeat(4 * 1024 * 1024);
    const file = await imageFile('0001', '2016-05-01', content);
    await onFileSystem(['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', pool], async () => {
      const error = await errorOf(
        provider.upload({ uploadId: 'u1', imageId: '0001', imageName: 'debian', file }),
      );
      assert.equal(error.code, 'disk-full');
      assert.match(error.message, /no space left.*make room there/i);
      assert.deepEqual(await readdir(pool), []);
    });
  });

  it('that can share blocks shares them', async () => {
    const disk = join(root, 'xfs');
    command('truncate', '--size=400M', disk);
    command('mkfs.xfs', '-q', disk);
    await onFileSystem(['-o', 'loop', disk, pool], async () => {
      const content = 'x'.repeat(4 * 1024 * 1024);
      const path = join(pool, 'built.qcow2');
      await writeFile(path, content);
      const file: ImageFile = {
        format: 'qcow2',
        path,
        size: content.length,
        checksums: checksumsOf(content),
      };
      const { externalId } = await provider.upload({
        uploadId: 'u1',
        imageId: '0001',
        imageName: 'debian',
        file,
      });
      assert.equal(await readFile(join(pool, externalId), 'utf8'), content);
      assert.match(command('filefrag', '-v', join(pool, externalId)), /shared/);
    });
  });
});

async function onFileSystem(mountArguments: readonly string[], work: () => Promise<void>): Promise<void> {
  command('mount', ...mountArguments);
  try {
    await work();
  } finally {
    command('umount', pool);
  }
}

function command(name: string, ...args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(name, args, { encoding: 'utf8' });
  assert.equal(status, 0, `${name}: ${stderr}`);
  return stdout;
}
