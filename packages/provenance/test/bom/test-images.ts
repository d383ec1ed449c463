import { mkdir, mkdtemp, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { ImageFormat } from '@nodepool-builder/image-builder';
import { execa } from 'execa';
import { type FoundPackages, readPackages } from '../../src/bom/read-packages.ts';

/** Debian keeps sfdisk, mke2fs and debugfs from the PATH of ordinary users. */
const PATH = `${process.env.PATH}:/usr/sbin:/sbin`;

export async function run(command: string, args: readonly string[], input?: string): Promise<string> {
  const { stdout } = await execa(command, args, {
    env: { PATH },
    ...(input === undefined ? { stdin: 'ignore' as const } : { input }),
  });
  return stdout;
}

/** A directory that is removed at the end. */
export async function withDirectory<T>(work: (directory: string) => Promise<T>): Promise<T> {
  const directory = await mkdtemp(join(tmpdir(), 'packages-'));
  try {
    return await work(directory);
  } finally {
    await rm(directory, { recursive: true });
  }
}

/** Content of files by their paths. */
export type Tree = Readonly<Record<string, string | Buffer>>;

export async function writeTree(directory: string, tree: Tree): Promise<string> {
  await mkdir(directory, { recursive: true });
  for (const [path, content] of Object.entries(tree)) {
    await mkdir(dirname(join(directory, path)), { recursive: true });
    await writeFile(join(directory, path), content);
  }
  return directory;
}

const MEBIBYTE = 2 ** 20;

/** Makes a file system of a directory, without root. */
export async function makeExt(
  path: string,
  tree: string,
  { type = 'ext4', size = 16 * MEBIBYTE, options = [] as readonly string[], offset = 0 } = {},
): Promise<void> {
  const blocks = `${Math.floor(size / 1024)}k`;
  await run('mke2fs', [
    '-q',
    '-F',
    '-t',
    type,
    '-d',
    tree,
    '-E',
    `offset=${offset}`,
    ...options,
    path,
    blocks,
  ]);
}

/** Makes an XFS file system with Debian's files and a large directory, without root. */
export async function makeXfs(path: string, directory: string, options: readonly string[]): Promise<void> {
  const contents = await writeTree(join(directory, 'contents'), {
    status: DPKG_STATUS,
    release: DEBIAN['etc/os-release'] ?? '',
  });
  const many = Array.from(
    { length: 400 },
    (_, index) => `    an-unrelated-package-${index}.list ---644 0 0 /dev/null`,
  );
  // The format of mkfs.xfs -p: a boot file, blocks and inodes, then the tree.
  const prototype = `/dev/null
0 0
d--755 0 0
  etc d--755 0 0
    os-release l--777 0 0 ../usr/lib/os-release
  $
  usr d--755 0 0
    lib d--755 0 0
      os-release ---644 0 0 ${join(contents, 'release')}
    $
  $
  var l--777 0 0 ${'/./'.repeat(200)}state
  state d--755 0 0
   lib d--755 0 0
   dpkg d--755 0 0
${many.join('\n')}
    status ---644 0 0 ${join(contents, 'status')}
   $
   $
  $
$
`;
  await writeTree(directory, { prototype });
  await writeFile(path, '');
  await truncate(path, 512 * MEBIBYTE);
  await run('mkfs.xfs', ['-q', '-f', ...options, '-p', join(directory, 'prototype'), path]);
}

/** Makes a disk with a partition table whose last partition has the file system of a directory. */
export async function makeDisk(path: string, tree: string, script: string): Promise<void> {
  await writeFile(path, '');
  await truncate(path, 64 * MEBIBYTE);
  await run('sfdisk', ['-q', path], script);
  const { partitiontable } = JSON.parse(await run('sfdisk', ['--json', path])) as {
    partitiontable: { partitions: readonly { start: number; size: number }[] };
  };
  const { start, size } = partitiontable.partitions.at(-1) ?? { start: 0, size: 0 };
  await makeExt(path, tree, { offset: start * 512, size: size * 512 });
}

export async function packagesOfFile(path: string, format: ImageFormat): Promise<FoundPackages> {
  const image = { imageId: '1-a', directory: dirname(path), files: [{ format, path }] };
  return await readPackages(image);
}

/** `curl 7.88 amd64`, or the reason. */
export function linesOf(found: FoundPackages): readonly string[] | string {
  if ('reason' in found) return found.reason;
  return found.packages.map(({ name, version, architecture }) =>
    [name, version, architecture].filter((part) => part !== undefined).join(' '),
  );
}

export const DPKG_STATUS = `Package: curl
Status: install ok installed
Priority: optional
Architecture: amd64
Version: 7.88.1-10+deb12u5
Description: command line tool
 Package: not-a-field
 .
Conffiles:
 /etc/curl 0123

Package: vim
Status: deinstall ok config-files
Architecture: amd64
Version: 2:9.0

Package: libc6
Status: install ok installed
Architecture: i386
Multi-Arch: same
Version: 2.36-9

Package: libc6
Status: install ok unpacked
Architecture: amd64
Multi-Arch: same
Version: 2.36-9
`;

export const DEBIAN: Tree = {
  'etc/os-release': 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nVERSION_ID="12"\nID=debian\n',
  'var/lib/dpkg/status': DPKG_STATUS,
};

export const DEBIAN_LINES: readonly string[] = [
  'curl 7.88.1-10+deb12u5 amd64',
  'libc6 2.36-9 i386',
  'libc6 2.36-9 amd64',
];
