import assert from 'node:assert/strict';
import { readFile, rename, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { ImageFormat } from '@nodepool-builder/image-builder';
import { readPackages } from '../../src/bom/read-packages.ts';
import {
  DEBIAN,
  DEBIAN_LINES,
  linesOf,
  makeDisk,
  makeExt,
  makeXfs,
  packagesOfFile,
  run,
  withDirectory,
  writeTree,
} from './test-images.ts';

async function withDebian(work: (directory: string, tree: string) => Promise<void>): Promise<void> {
  await withDirectory(async (directory) => {
    await work(directory, await writeTree(join(directory, 'tree'), DEBIAN));
  });
}

const EXT_VARIANTS = [
  ['ext4', []],
  ['ext4', ['-b', '1024']],
  ['ext4', ['-O', '^64bit,^metadata_csum']],
  ['ext4', ['-O', '^has_journal', '-I', '128']],
  ['ext3', []],
  ['ext2', []],
] as const;

for (const [type, options] of EXT_VARIANTS) {
  test(`packages of a raw image, the file system ${[type, ...options].join(' ')}`, async () => {
    await withDebian(async (directory, tree) => {
      const path = join(directory, '1-a.raw');
      await makeExt(path, tree, { type, options });
      const found = await packagesOfFile(path, 'raw');
      assert.deepEqual(linesOf(found), DEBIAN_LINES);
      assert.ok('packages' in found);
      assert.equal(found.source, 'dpkg database in 1-a.raw');
      assert.equal(
        found.packages[0]?.purl,
        'pkg:deb/debian/curl@7.88.1-10+deb12u5?arch=amd64&distro=debian-12',
      );
    });
  });
}

const XFS_VARIANTS = [
  [],
  ['-m', 'crc=0'],
  ['-m', 'crc=0', '-n', 'ftype=0'],
  ['-b', 'size=1024', '-m', 'bigtime=0,inobtcount=0'],
  ['-n', 'size=8192'],
  ['-i', 'size=1024,nrext64=1'],
] as const;

for (const options of XFS_VARIANTS) {
  test(`packages of a raw image, the file system XFS ${options.join(' ')}`, async () => {
    await withDirectory(async (directory) => {
      const path = join(directory, '1-a.raw');
      await makeXfs(path, directory, options);
      const found = await packagesOfFile(path, 'raw');
      assert.deepEqual(linesOf(found), DEBIAN_LINES);
      assert.ok('packages' in found);
      assert.match(found.packages[0]?.purl ?? '', /distro=debian-12$/);
    });
  });
}

const PARTITION_TABLES = {
  GPT: 'label: gpt\nsize=1MiB, type=21686148-6449-6E6F-744E-656564454649\nsize=8MiB, type=uefi\ntype=linux\n',
  MBR: 'label: dos\nsize=8MiB, type=ef\ntype=83, bootable\n',
  'MBR with logical partitions':
    'label: dos\nsize=8MiB, type=83\ntype=5\nsize=4MiB, type=83\nsize=32MiB, type=83\n',
};

for (const [name, script] of Object.entries(PARTITION_TABLES)) {
  test(`packages of a raw disk with a partition table: ${name}`, async () => {
    await withDebian(async (directory, tree) => {
      const path = join(directory, '1-a.raw');
      await makeDisk(path, tree, script);
      assert.deepEqual(linesOf(await packagesOfFile(path, 'raw')), DEBIAN_LINES);
    });
  });
}

const CONVERSIONS: readonly (readonly [ImageFormat, ...string[]])[] = [
  ['qcow2'],
  ['qcow2', '-c'],
  ['qcow2', '-c', '-o', 'compression_type=zstd'],
  ['vmdk'],
  ['vdi'],
  ['vhdx'],
  ['vhd', '-o', 'subformat=dynamic'],
];

test('packages of disks in other formats, without a copy of the disk', async () => {
  await withDebian(async (directory, tree) => {
    const raw = join(directory, 'disk');
    await makeDisk(raw, tree, PARTITION_TABLES.GPT);
    for (const [format, ...options] of CONVERSIONS) {
      const path = join(directory, `1-a.${format}`);
      const driver = format === 'vhd' ? 'vpc' : format;
      await run('qemu-img', ['convert', '-f', 'raw', '-O', driver, ...options, raw, path]);
      assert.deepEqual(linesOf(await packagesOfFile(path, format)), DEBIAN_LINES, format);
    }
  });
});

test('packages of tar archives, of GNU and of POSIX', async () => {
  await withDebian(async (directory, tree) => {
    for (const format of ['gnu', 'pax', 'ustar']) {
      for (const [image, options] of [
        ['tar', ['-cf']],
        ['tgz', ['-czf']],
      ] as const) {
        const path = join(directory, `1-a.${image}`);
        await run('tar', [`--format=${format}`, ...options, path, '-C', tree, '.']);
        assert.deepEqual(linesOf(await packagesOfFile(path, image)), DEBIAN_LINES, `${format} ${image}`);
      }
    }
  });
});

test('symbolic links are followed inside of the image alone', async () => {
  await withDirectory(async (directory) => {
    const tree = await writeTree(join(directory, 'tree'), {
      'usr/lib/os-release': 'ID=alpine\nVERSION_ID=3.20.1\n',
      'usr/lib/apk/db/installed':
        'C:Q1\nP:musl\nV:1.2.5-r0\nA:x86_64\nL:MIT\nF:lib\nR:libc.so\n\nP:zlib\nV:1.3.1-r1\n',
      'etc/hostname': 'a',
    });
    await symlink('/usr/lib', join(tree, 'lib'));
    await symlink('../../../../usr/lib/os-release', join(tree, 'etc/os-release'));
    await symlink('/var', join(tree, 'var'));
    const path = join(directory, '1-a.raw');
    await makeExt(path, tree);
    const found = await packagesOfFile(path, 'raw');
    assert.deepEqual(linesOf(found), ['musl 1.2.5-r0 x86_64', 'zlib 1.3.1-r1']);
    assert.ok('packages' in found);
    assert.equal(found.packages[0]?.license, 'MIT');
    assert.equal(found.packages[0]?.purl, 'pkg:apk/alpine/musl@1.2.5-r0?arch=x86_64&distro=alpine-3.20.1');
  });
});

test('the packages of this host are those that dpkg-query lists', async () => {
  await withDirectory(async (directory) => {
    const tree = await writeTree(join(directory, 'tree'), {
      'var/lib/dpkg/status': await readFile('/var/lib/dpkg/status'),
    });
    const path = join(directory, '1-a.raw');
    await makeExt(path, tree, { size: 64 * 2 ** 20 });
    const format = `\${db:Status-Status} \${Package} \${Version} \${Architecture}\n`;
    const listed = await run('dpkg-query', ['-W', '-f', format]);
    const expected = listed
      .split('\n')
      .filter((line) => !/^(?:not-installed|config-files) /.test(line))
      .map((line) => line.replace(/^\S+ /, ''));
    const found = linesOf(await packagesOfFile(path, 'raw'));
    assert.deepEqual(new Set(found), new Set(expected));
  });
});

test("diskimage-builder's manifest comes first", async () => {
  await withDebian(async (directory, tree) => {
    const path = join(directory, '1-a.raw');
    await makeExt(path, tree);
    const manifest =
      '{"packages": [\n' +
      '{"package": "bash","arch": "amd64","version": "5.2.15-2ubuntu1","status": "ii "},\n' +
      '{"package": "nano","arch": "amd64","version": "7.2","status": "rc "},\n' +
      '{"package": "libc6:i386","arch": "i386","version": "2.36-9","status": "ii "}\n]}';
    await writeTree(directory, { '1-a.d/dib-manifests/dib-manifest-dpkg-1-a': manifest });
    const found = await packagesOfFile(path, 'raw');
    assert.deepEqual(linesOf(found), ['bash 5.2.15-2ubuntu1 amd64', 'libc6 2.36-9 i386']);
    assert.ok('packages' in found);
    assert.equal(found.packages[0]?.purl, 'pkg:deb/ubuntu/bash@5.2.15-2ubuntu1?arch=amd64');
    assert.match(found.source, /manifest dib-manifest-dpkg-1-a/);

    await writeTree(directory, { '1-a.d/dib-manifests/dib-manifest-dpkg-1-a': '{"packages": [\n' });
    assert.deepEqual(
      linesOf(await packagesOfFile(path, 'raw')),
      DEBIAN_LINES,
      'a damaged one does not count',
    );
  });
});

test('a raw file is preferred, and a file that cannot be read is passed over', async () => {
  await withDebian(async (directory, tree) => {
    const raw = join(directory, '1-a.raw');
    await makeExt(raw, tree);
    const files = [
      { format: 'qcow2', path: join(directory, 'missing.qcow2') },
      { format: 'raw', path: raw },
    ] as const;
    const image = { imageId: '1-a', directory, files };
    assert.deepEqual(linesOf(await readPackages(image)), DEBIAN_LINES);
    await rename(raw, join(directory, '1-a.tar'));
    const reason = linesOf(await readPackages(image));
    assert.match(String(reason), /^1-a\.raw: .*no longer exists.*; missing\.qcow2: .*no longer exists/);
  });
});

const ODD: Readonly<Record<string, (path: string) => Promise<unknown>>> = {
  'an empty file': (path) => writeFile(path, ''),
  'a byte': (path) => writeFile(path, 'x'),
  zeros: async (path) => {
    await writeFile(path, '');
    await truncate(path, 2 ** 40);
  },
  text: (path) => writeFile(path, 'not a disk\n'.repeat(100_000)),
  'a FIFO': async (path) => await run('mkfifo', [path]),
  'a link': (path) => symlink('/etc/passwd', path),
  'a file system without packages': async (path) => {
    await writeFile(path, '');
    await truncate(path, 512 * 2 ** 20);
    await run('mkfs.xfs', ['-q', path]);
  },
};

for (const [name, make] of Object.entries(ODD)) {
  test(`no packages but a reason: ${name}`, async () => {
    await withDirectory(async (directory) => {
      for (const format of ['raw', 'qcow2', 'tar', 'tgz', 'squashfs'] as const) {
        const path = join(directory, `1-a.${format}`);
        await make(path);
        assert.match(String(linesOf(await packagesOfFile(path, format))), /^1-a\.\w+: .{10}/, format);
      }
    });
  });
}

test('a file system of a machine that was not shut down is refused', async () => {
  await withDebian(async (directory, tree) => {
    const path = join(directory, '1-a.raw');
    await makeExt(path, tree);
    await run('debugfs', ['-w', '-R', 'feature needs_recovery', path]);
    assert.match(String(linesOf(await packagesOfFile(path, 'raw'))), /not unmounted/);
  });
});

test('a disk that names another file of the host is refused', async () => {
  await withDebian(async (directory) => {
    const path = join(directory, '1-a.qcow2');
    await run('qemu-img', ['create', '-q', '-f', 'qcow2', '-b', '/etc/passwd', '-F', 'raw', path]);
    assert.match(String(linesOf(await packagesOfFile(path, 'qcow2'))), /names another file/);
  });
});

test('any damaged byte gives packages or a reason, within bounds', async () => {
  await withDebian(async (directory, tree) => {
    const path = join(directory, '1-a.raw');
    await makeExt(path, tree, { size: 2 ** 20, options: ['-b', '1024', '-O', '^has_journal', '-N', '32'] });
    const image = await readFile(path);
    const used = [...image.keys()].filter((position) => image[position] !== 0);
    for (let index = 0; index < 300; index += 1) {
      const position = used[(index * 7919) % used.length] ?? 0;
      const changed = Buffer.from(image);
      changed[position] = (changed[position] ?? 0) ^ (1 + (index % 255));
      await writeFile(path, changed);
      const found = await packagesOfFile(path, 'raw');
      if ('reason' in found) assert.match(found.reason, /^1-a\.raw: (?:it|its|no) /, String(position));
    }
  });
});

test('an abort ends the work', async () => {
  await withDebian(async (directory, tree) => {
    const path = join(directory, '1-a.raw');
    await makeExt(path, tree);
    const qcow2 = join(directory, '1-a.qcow2');
    await run('qemu-img', ['convert', '-O', 'qcow2', path, qcow2]);
    const stop = new AbortController();
    const files = [{ format: 'qcow2', path: qcow2 }] as const;
    const reading = readPackages({ imageId: '1-a', directory, files }, { signal: stop.signal });
    stop.abort(new Error('the build was cancelled'));
    await assert.rejects(reading, /the build was cancelled/);
  });
});
