import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, open, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { ImageError, type ImageFormat } from '@nodepool-builder/image-builder';
import { convertImage, inheritedEnvironment, runCommand } from '@nodepool-builder/image-builder/module-kit';

/** A file of an image. */
export interface DiskFile {
  readonly path: string;
  readonly format: ImageFormat;
}

/** Paths inside two disks that differ, each with the partition before it if there are several. */
export interface ContentChanges {
  readonly added: readonly string[];
  readonly removed: readonly string[];
  /** Path and what differs: `/etc/motd (content)`. */
  readonly changed: readonly string[];
}

/** Settings of {@link compareContents}. */
export interface ContentsOptions {
  /** Private directory for converted disks and for files of the disks. */
  readonly directory: string;
  readonly largestDisk: number;
  readonly signal: AbortSignal;
}

/**
 * Compares the files in the file systems of two disks, without mounting them: `debugfs` reads ext2, ext3 and ext4. Times
 * are not compared.
 *
 * @returns the reason, if the files cannot be read
 */
export async function compareContents(
  before: DiskFile,
  after: DiskFile,
  options: ContentsOptions,
): Promise<ContentChanges | { readonly reason: string }> {
  try {
    const [one, other] = [
      await openDisk(before, join(options.directory, 'before'), options),
      await openDisk(after, join(options.directory, 'after'), options),
    ];
    if (one.length !== other.length) {
      return { reason: `the disk had ${one.length} file systems and has ${other.length} now` };
    }
    const changes = { added: [] as string[], removed: [] as string[], changed: [] as string[] };
    for (const [index, fileSystem] of one.entries()) {
      const counterpart = other[index] as FileSystem;
      const prefix = one.length > 1 ? `${index + 1}:` : '';
      await compareFileSystems(fileSystem, counterpart, prefix, changes, options);
    }
    return changes;
  } catch (error) {
    options.signal.throwIfAborted();
    if (error instanceof Unreadable) return { reason: error.message };
    if (error instanceof ImageError && error.code === 'command-not-found') {
      return { reason: `${error.message}; Debian has it in the packages e2fsprogs, fdisk and qemu-utils` };
    }
    throw error;
  }
}

/** A disk whose files cannot be read, for people. */
class Unreadable extends Error {}

interface FileSystem {
  /** Argument of debugfs. */
  readonly device: string;
  readonly directory: string;
}

const SECTOR = 512;

/** Finds the file systems of a disk. */
async function openDisk(
  { path, format }: DiskFile,
  directory: string,
  { largestDisk, signal }: ContentsOptions,
): Promise<readonly FileSystem[]> {
  await mkdir(directory, { mode: 0o700 });
  const raw = format === 'raw' ? path : join(directory, 'disk.raw');
  if (format !== 'raw') await convertImage({ path, format }, 'raw', raw, { signal, largestDisk });
  const found: FileSystem[] = [];
  const kinds = new Set<string>();
  for (const offset of await partitionOffsets(raw, directory, signal)) {
    if (await isExt(raw, offset)) found.push({ device: `${raw}?offset=${offset}`, directory });
    else kinds.add(`at byte ${offset}`);
  }
  if (found.length > 0) return found;
  throw new Unreadable(
    `the disk has no file system of ext2, ext3 or ext4, which debugfs could read (looked ${[...kinds].join(', ')}); ` +
      'compare the files with virt-diff of libguestfs',
  );
}

async function partitionOffsets(
  raw: string,
  directory: string,
  signal: AbortSignal,
): Promise<readonly number[]> {
  if (await isExt(raw, 0)) return [0];
  const output = await outputOf('sfdisk', ['--dump', raw], directory, signal).catch((error: unknown) => {
    if (error instanceof Unreadable) return []; // no partition table
    throw error;
  });
  const starts = output.flatMap((line) => /start= *(\d+)/.exec(line)?.[1] ?? []);
  return starts.length === 0 ? [0] : starts.map((start) => Number(start) * SECTOR);
}

/** Position of the superblock's magic number, and its value. */
const MAGIC = { position: 1024 + 56, value: 0xef_53 };

async function isExt(raw: string, offset: number): Promise<boolean> {
  const file = await open(raw);
  try {
    const bytes = Buffer.alloc(2);
    await file.read(bytes, 0, 2, offset + MAGIC.position);
    return bytes.readUInt16LE() === MAGIC.value;
  } finally {
    await file.close();
  }
}

/** Directories of administrators' programs, which the PATH of other users may lack. */
const SBIN = '/usr/local/sbin:/usr/sbin:/sbin';

/** @throws Unreadable if the command fails; ImageError `command-not-found` */
async function outputOf(
  command: string,
  args: readonly string[],
  cwd: string,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const lines: string[] = [];
  const environment = inheritedEnvironment();
  const result = await runCommand(command, args, {
    cwd,
    env: { ...environment, PATH: `${environment.PATH ?? ''}:${SBIN}`, LC_ALL: 'C.UTF-8' },
    signal,
    onLine: (line) => void lines.push(line),
  });
  if (result.exitCode === 0) return lines;
  throw new Unreadable(`"${command}" cannot read the disk: ${result.decisiveLines.join(' / ')}`);
}

/** An entry of a directory. */
interface Entry {
  readonly inode: number;
  /** Type and permissions, in octal digits. */
  readonly mode: string;
  readonly owner: string;
  readonly size: number;
}

const TYPE = { directory: '04', file: '10', link: '12' } as const;

/** Directories in one run of debugfs. */
const DIRECTORIES = 500;

/** `/inode/mode/uid/gid/name/size/`. */
const LINE = /^\/(\d+)\/(\d{6})\/(\d+)\/(\d+)\/(.*)\/(\d*)\/$/;

/** The inode of the root directory. */
const ROOT = 2;

/** All entries of a file system, by path. */
async function entriesOf(fileSystem: FileSystem, signal: AbortSignal): Promise<ReadonlyMap<string, Entry>> {
  const entries = new Map<string, Entry>();
  const seen = new Set([ROOT]);
  let level: readonly (readonly [path: string, inode: number])[] = [['', ROOT]];
  while (level.length > 0) {
    const next: [string, number][] = [];
    for (let index = 0; index < level.length; index += DIRECTORIES) {
      const paths = new Map(level.slice(index, index + DIRECTORIES).map(([path, inode]) => [inode, path]));
      let directory = '';
      const commands = Array.from(paths.keys(), (inode) => `ls -p <${inode}>`);
      for (const line of await debugfs(fileSystem, commands, signal)) {
        const listed = /^debugfs: ls -p <(\d+)>$/.exec(line)?.[1];
        if (listed !== undefined) directory = paths.get(Number(listed)) ?? '';
        const [, inode, mode = '', user, group, name = '', size] = LINE.exec(line) ?? [];
        if (inode === undefined || name === '.' || name === '..') continue;
        const path = `${directory}/${name}`;
        const entry = { inode: Number(inode), mode, owner: `${user}:${group}`, size: Number(size) };
        entries.set(path, entry);
        if (!mode.startsWith(TYPE.directory) || seen.has(entry.inode)) continue;
        seen.add(entry.inode); // a damaged file system may have loops
        next.push([path, entry.inode]);
      }
    }
    level = next;
  }
  return entries;
}

/** Runs commands of debugfs, and returns the lines of its output, each command after `debugfs: `. */
async function debugfs(
  { device, directory }: FileSystem,
  commands: readonly string[],
  signal: AbortSignal,
): Promise<readonly string[]> {
  const script = join(directory, 'commands');
  await writeFile(script, commands.map((command) => `${command}\n`).join(''));
  return await outputOf('debugfs', ['-f', script, device], directory, signal);
}

async function compareFileSystems(
  before: FileSystem,
  after: FileSystem,
  prefix: string,
  changes: { readonly added: string[]; readonly removed: string[]; readonly changed: string[] },
  { signal }: ContentsOptions,
): Promise<void> {
  const [old, now] = [await entriesOf(before, signal), await entriesOf(after, signal)];
  const candidates: string[] = [];
  for (const path of [...new Set([...old.keys(), ...now.keys()])].toSorted()) {
    const [was, is] = [old.get(path), now.get(path)];
    if (was === undefined) changes.added.push(`${prefix}${path}`);
    else if (is === undefined) changes.removed.push(`${prefix}${path}`);
    else {
      const differences = [
        ...(was.mode === is.mode ? [] : [`mode ${was.mode} → ${is.mode}`]),
        ...(was.owner === is.owner ? [] : [`owner ${was.owner} → ${is.owner}`]),
        // Sizes of directories depend on the order in which files came and went.
        ...(was.size === is.size || is.mode.startsWith(TYPE.directory) ? [] : ['content']),
      ];
      if (differences.length > 0) changes.changed.push(`${prefix}${path} (${differences.join(', ')})`);
      else if (hasContent(is)) candidates.push(path);
    }
  }
  const digests = [
    await digestsOf(before, old, candidates, signal),
    await digestsOf(after, now, candidates, signal),
  ];
  const [one, other] = digests;
  for (const path of candidates) {
    const inodes = [old.get(path)?.inode ?? 0, now.get(path)?.inode ?? 0] as const;
    if (one?.get(inodes[0]) !== other?.get(inodes[1])) changes.changed.push(`${prefix}${path} (content)`);
  }
  changes.changed.sort();
}

function hasContent({ mode, size }: Entry): boolean {
  return size > 0 && (mode.startsWith(TYPE.file) || mode.startsWith(TYPE.link));
}

/** Files and bytes that are copied out of a disk at a time. */
const FILES = 500;
const BYTES = 256 * 2 ** 20;

/** Digests of the content of files, and the targets of links, by inode. */
async function digestsOf(
  fileSystem: FileSystem,
  entries: ReadonlyMap<string, Entry>,
  paths: readonly string[],
  signal: AbortSignal,
): Promise<ReadonlyMap<number, string>> {
  const digests = new Map<number, string>();
  const inodes = new Map(
    paths.flatMap((path) => {
      const entry = entries.get(path);
      return entry === undefined ? [] : [[entry.inode, entry] as const];
    }),
  );
  let batch: Entry[] = [];
  let bytes = 0;
  for (const entry of inodes.values()) {
    batch.push(entry);
    bytes += entry.size;
    if (batch.length < FILES && bytes < BYTES) continue;
    await digestBatch(fileSystem, batch, digests, signal);
    [batch, bytes] = [[], 0];
  }
  if (batch.length > 0) await digestBatch(fileSystem, batch, digests, signal);
  return digests;
}

async function digestBatch(
  fileSystem: FileSystem,
  batch: readonly Entry[],
  digests: Map<number, string>,
  signal: AbortSignal,
): Promise<void> {
  // Names in the image are never used as paths of this host: the content of inode 12 goes to a file 12.
  const directory = join(fileSystem.directory, 'files');
  await mkdir(directory, { mode: 0o700 });
  try {
    const commands = batch.map(({ inode, mode }) =>
      mode.startsWith(TYPE.link) ? `stat <${inode}>` : `dump <${inode}> "${join(directory, String(inode))}"`,
    );
    let current = 0;
    for (const line of await debugfs(fileSystem, commands, signal)) {
      const inode = /^debugfs: (?:stat|dump) <(\d+)>/.exec(line)?.[1];
      if (inode !== undefined) current = Number(inode);
      const target = /^Fast link dest: (.*)$/.exec(line)?.[1];
      if (target !== undefined) digests.set(current, target);
    }
    const slow = batch.filter(({ inode, mode }) => mode.startsWith(TYPE.link) && !digests.has(inode));
    if (slow.length > 0) {
      const dumps = slow.map(({ inode }) => `dump <${inode}> "${join(directory, String(inode))}"`);
      await debugfs(fileSystem, dumps, signal);
    }
    for (const { inode } of batch) {
      if (digests.has(inode)) continue;
      const hash = createHash('sha256');
      await pipeline(createReadStream(join(directory, String(inode))), hash, { signal }).catch((cause) => {
        signal.throwIfAborted();
        throw new Unreadable(`"debugfs" cannot read inode ${inode} of ${fileSystem.device}`, { cause });
      });
      digests.set(inode, hash.digest('hex'));
    }
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
