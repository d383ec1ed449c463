import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import {
  chmod,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rename,
  rm,
  stat,
  symlink,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
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
    it(`leaves files that are readable by all and writable by their owner, with umask 0${umask.toString(8)}`, async (t) => {
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

  it('removes the temporary files of an earlier try, whatever host or process made them, and no others', async () => {
    const left = '.upload-upload-0001.00000000.part';
    const others = ['.upload-another.00000000.part', '.upload-host.1.00000000.part', '.profile'];
    for (const name of [left, ...others]) await writeFile(join(pool, name), 'half an image');
    await upload('0001', '2016-05-01');
    const hidden = (await readdir(pool)).filter((name) => name.startsWith('.'));
    assert.deepEqual(hidden.toSorted(), others.toSorted());
  });

  for (const name of ['debian-0001.qcow2', 'debian-0001.qcow2.json', 'debian-latest.qcow2']) {
    it(`does not replace a file called ${name} that is not its own`, async () => {
      await writeFile(join(pool, name), 'precious');
      const error = await errorOf(upload('0001', '2016-05-01'));
      assert.equal(error.code, 'provider-refused');
      assert.match(error.message, new RegExp(`${name} was not made by this software.*move it away`));
      assert.deepEqual(await readdir(pool), [name]);
      assert.equal(await readFile(join(pool, name), 'utf8'), 'precious');
    });
  }

  it('does not replace a file that appears during the copy', async () => {
    const file = await imageFile('0001', '2016-05-01', 'x'.repeat(2 * 1024 * 1024));
    const onProgress = (): void => writeFileSync(join(pool, 'debian-0001.qcow2'), 'precious');
    const error = await errorOf(
      provider.upload({ uploadId: 'u1', imageId: '0001', imageName: 'debian', file }, { onProgress }),
    );
    assert.equal(error.code, 'provider-refused');
    assert.equal(await readFile(join(pool, 'debian-0001.qcow2'), 'utf8'), 'precious');
    assert.deepEqual(await readdir(pool), ['debian-0001.qcow2']);
  });

  it('leaves a link that leads out of the directory alone', async () => {
    await symlink('/srv/pinned.qcow2', join(pool, 'debian-latest.qcow2'));
    assert.equal((await errorOf(upload('0001', '2016-05-01'))).code, 'provider-refused');
    assert.equal(await readlink(join(pool, 'debian-latest.qcow2')), '/srv/pinned.qcow2');
  });

  for (const known of [true, false]) {
    it(`refuses a file that is written to during the copy, its digests ${known ? 'known' : 'unknown'}`, async () => {
      const { checksums, ...file } = await imageFile('0001', '2016-05-01', 'x'.repeat(8 * 1024 * 1024));
      const written = { isDone: false };
      const onProgress = (): void => {
        if (written.isDone) return;
        written.isDone = true;
        writeFileSync(file.path, 'y'.repeat(8 * 1024 * 1024), { flag: 'r+' });
      };
      const error = await errorOf(
        provider.upload(
          {
            uploadId: 'u1',
            imageId: '0001',
            imageName: 'debian',
            file: { ...file, ...(known && checksums && { checksums }) },
          },
          { onProgress },
        ),
      );
      assert.equal(error.code, 'image-changed');
      assert.deepEqual(await readdir(pool), []);
    });
  }

  it('never gives an image the manifest of other bytes', async () => {
    await upload('0001', '2016-05-01');
    const file = await imageFile('0001', '2016-05-02', 'other bytes');
    await provider.upload({ uploadId: 'u2', imageId: '0001', imageName: 'debian', file });
    const manifest = JSON.parse(await readFile(join(pool, 'debian-0001.qcow2.json'), 'utf8'));
    assert.equal(manifest['upload-id'], 'u2');
    assert.equal(manifest.sha256, checksumsOf('other bytes').sha256);
    assert.equal(await readFile(join(pool, 'debian-latest.qcow2'), 'utf8'), 'other bytes');
  });

  it('keeps all uploads together below the bandwidth limit', async () => {
    const size = 512 * 1024;
    provider = new DirectoryProvider({ name: 'pool', directory: pool, bandwidthLimit: 4 * size });
    const files = await Promise.all(['1', '2'].map((id) => imageFile(id, '2016-05-01', id.repeat(size))));
    const started = performance.now();
    await Promise.all(
      files.map((file, index) =>
        provider.upload({ uploadId: `u${index}`, imageId: `${index}`, imageName: 'debian', file }),
      ),
    );
    // The first piece is not delayed.
    assert.ok(performance.now() - started > 450, `it took ${performance.now() - started} ms`);
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

describe('a manifest that another program wrote', () => {
  const OTHER = 'debian-0002.qcow2';
  const forge = async (size: number): Promise<void> => {
    const manifest = JSON.parse(await readFile(join(pool, 'debian-0001.qcow2.json'), 'utf8'));
    const forged = { ...manifest, 'image-id': '0002', size, built: '2016-05-02T00:00:00.000Z' };
    await writeFile(join(pool, `${OTHER}.json`), JSON.stringify(forged));
  };
  const OTHERS: readonly (readonly [what: string, make: (path: string) => Promise<void>])[] = [
    ['a symbolic link to a file of the host', (path) => symlink('/etc/hostname', path)],
    ['an empty file', (path) => writeFile(path, '')],
    ['a file of another size', (path) => writeFile(path, 'image 0002 and more')],
    ['a directory', (path) => mkdir(path)],
  ];
  for (const [what, make] of OTHERS) {
    it(`makes no image of ${what}`, async () => {
      await upload('0001', '2016-05-01');
      await make(join(pool, OTHER));
      await forge((await stat(join(pool, OTHER))).size + Number(what === 'a file of another size'));
      assert.deepEqual(
        (await provider.list()).map(({ imageId }) => imageId),
        ['0001'],
      );
      await upload('0000', '2016-04-01');
      assert.equal(await readlink(join(pool, 'debian-latest.qcow2')), 'debian-0001.qcow2');
    });
  }

  it('is not read if it is a FIFO or a symbolic link', async () => {
    await upload('0001', '2016-05-01');
    await writeFile(join(pool, OTHER), 'image 0002');
    await forge(10);
    assert.equal((await provider.list()).length, 2);
    await rename(join(pool, `${OTHER}.json`), join(root, 'forged.json'));
    await symlink(join(root, 'forged.json'), join(pool, `${OTHER}.json`));
    assert.equal((await provider.list()).length, 1);
    await rm(join(pool, `${OTHER}.json`));
    assert.equal(spawnSync('mkfifo', [join(pool, `${OTHER}.json`)]).status, 0);
    assert.equal((await provider.list()).length, 1);
  });
});

describe('the link to the latest image under wrong clocks', () => {
  const latest = (): Promise<string> => readlink(join(pool, 'debian-latest.qcow2'));
  const warnings: string[] = [];
  const openAt = (day: string): void => {
    warnings.length = 0;
    provider = new DirectoryProvider({
      name: 'pool',
      directory: pool,
      now: () => Date.parse(day),
      logger: { warn: (message) => warnings.push(message) },
    });
  };

  it('counts a build in the future as built now, with a warning', async () => {
    openAt('2026-05-02');
    await upload('a', '2036-05-01');
    const manifest = JSON.parse(await readFile(join(pool, 'debian-a.qcow2.json'), 'utf8'));
    assert.equal(manifest.built, '2026-05-02T00:00:00.000Z');
    assert.match(warnings.join(), /provider pool: image a has a build time in the future, 2036-05-01/);
    openAt('2026-05-04');
    await upload('b', '2026-05-03');
    assert.equal(await latest(), 'debian-b.qcow2');
  });

  it('moves on from an image whose manifest has a date in the future, with one warning', async () => {
    openAt('2099-01-02');
    await upload('a', '2099-01-01');
    assert.equal(await latest(), 'debian-a.qcow2');
    openAt('2026-05-04');
    await upload('b', '2026-05-03');
    assert.equal(await latest(), 'debian-b.qcow2');
    await upload('c', '2026-05-04');
    assert.equal(await latest(), 'debian-c.qcow2');
    assert.equal(warnings.length, 1);
    assert.match(
      String(warnings[0]),
      /provider pool: debian-a\.qcow2 has a build time in the future, 2099-01-01/,
    );
  });

  it('follows the numbers of image-ids where a clock ran ahead or fell behind', async () => {
    for (const [number, now] of [
      [4, '2026-05-04'],
      [5, '2099-01-01'],
      [6, '2026-05-05'],
      [7, '1970-01-02'],
    ] as const) {
      openAt(now);
      const imageId = `debian-000000000${number}-k7f3q2xa`;
      await upload(imageId, now);
      assert.equal(await latest(), `debian-${imageId}.qcow2`);
    }
  });
});

describe('a crash', () => {
  /** Kills an uploading process right before it renames a file to its public name. */
  const killedBefore = (name: string): void => {
    const script = `
      import fs from 'node:fs/promises';
      import { syncBuiltinESMExports } from 'node:module';
      const { rename } = fs;
      fs.rename = async (from, to) => {
        if (to === process.env.STOP_AT) process.kill(process.pid, 'SIGKILL');
        await rename(from, to);
      };
      syncBuiltinESMExports();
      const { DirectoryProvider } = await import(process.env.PROVIDER);
      const provider = new DirectoryProvider({ name: 'pool', directory: process.env.POOL });
      await provider.upload(JSON.parse(process.env.REQUEST));
    `;
    const path = join(root, '0001.qcow2');
    const file = { format: 'qcow2', path, size: 'image 0001'.length };
    const { signal, stderr } = spawnSync(
      process.execPath,
      [...process.execArgv.filter((arg) => !arg.startsWith('--test')), '--input-type=module', '-e', script],
      {
        encoding: 'utf8',
        env: {
          ...process.env,
          STOP_AT: join(pool, name),
          POOL: pool,
          PROVIDER: new URL('../../src/directory/directory-provider.ts', import.meta.url).href,
          REQUEST: JSON.stringify({ uploadId: 'upload-0001', imageId: '0001', imageName: 'debian', file }),
        },
      },
    );
    assert.equal(signal, 'SIGKILL', stderr);
  };

  for (const name of ['debian-0001.qcow2.json', 'debian-0001.qcow2']) {
    it(`before ${name} has its name leaves no image without a manifest, and nothing after a discard`, async () => {
      await imageFile('0001', '2016-05-01');
      killedBefore(name);
      const left = await readdir(pool);
      assert.ok(
        left.some((file) => file.endsWith('.part')),
        left.join(),
      );
      assert.ok(!left.includes('debian-0001.qcow2'), left.join());
      assert.deepEqual(await provider.list(), []);
      const leftovers = await provider.leftovers();
      assert.ok(leftovers.every(({ uploadId }) => uploadId === 'upload-0001'));
      assert.equal(leftovers.length, left.length);
      await provider.discard('upload-0001');
      assert.deepEqual(await readdir(pool), []);
    });

    it(`before ${name} has its name is repaired by the next try, or by removing the leftovers`, async () => {
      await imageFile('0001', '2016-05-01');
      killedBefore(name);
      for (const leftover of await provider.leftovers()) assert.equal(await leftover.remove(), true);
      assert.deepEqual(await readdir(pool), []);
      killedBefore(name);
      await upload('0001', '2016-05-01');
      assert.deepEqual((await readdir(pool)).toSorted(), [
        'debian-0001.qcow2',
        'debian-0001.qcow2.json',
        'debian-latest.qcow2',
      ]);
    });
  }

  it('during a deletion leaves a manifest that is listed as a leftover', async () => {
    await upload('0001', '2016-05-01');
    await rm(join(pool, 'debian-0001.qcow2'));
    const [leftover] = await provider.leftovers();
    assert.equal(leftover?.subject, 'file debian-0001.qcow2.json');
    await leftover?.remove();
    assert.ok(!(await readdir(pool)).includes('debian-0001.qcow2.json'));
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

  it('that fills up at the manifest fails the upload, and nothing has the public name', async () => {
    const content = 'x'.repeat(1024 * 1024);
    const file = await imageFile('0001', '2016-05-01', content);
    // The image fills the disk.
    await onFileSystem(['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', pool], async () => {
      const error = await errorOf(
        provider.upload({ uploadId: 'u1', imageId: '0001', imageName: 'debian', file }),
      );
      assert.equal(error.code, 'disk-full');
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
