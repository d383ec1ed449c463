import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';

/** Time limit for processes and mounts that are ending, in milliseconds. */
const SETTLE_TIMEOUT = 5_000;

/**
 * Paths where apt leaves packages and logs, where set-up disables services of packages, and where Debian's e2fsprogs,
 * skopeo and systemd-analyze keep notes.
 */
const SYSTEM_PATHS = [
  'var/cache/apt',
  'var/lib/apt',
  'var/log/apt',
  'etc/rc[0-6S].d',
  'var/lib/containers/cache',
  'var/lib/libuuid',
  'run/systemd',
];

/** A process of this machine. */
interface Process {
  readonly pid: number;
  readonly parent: number;
  readonly command: string;
}

/** Polls until the answer is empty or time is up; resolves with the last answer. */
export async function settled(ask: () => readonly string[]): Promise<readonly string[]> {
  for (const end = Date.now() + SETTLE_TIMEOUT; ; await delay(50)) {
    const answer = ask();
    if (answer.length === 0 || Date.now() > end) return answer;
  }
}

/** The descendants of a process below its children. */
export function grandchildrenOf(pid: number): string[] {
  const processes = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => readProcess(Number(name)))
    .filter((process) => process !== undefined);
  const childrenOf = (parent: number): Process[] => processes.filter((process) => process.parent === parent);
  const descendantsOf = (parent: number): Process[] =>
    childrenOf(parent).flatMap((child) => [child, ...descendantsOf(child.pid)]);
  return childrenOf(pid)
    .flatMap((child) => descendantsOf(child.pid))
    .map(({ pid: id, command }) => `process ${id}: ${command}`);
}

/** The mounts that a process sees, without the root and the kernel's own file systems. */
export function mountsOf(pid: number): string[] {
  return readFileSync(`/proc/${pid}/mountinfo`, 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[4] ?? '/')
    .filter((target) => !/^\/(?:(?:proc|sys|dev)(?:\/|$)|$)/.test(target))
    .map((target) => `mount: ${target}`);
}

/**
 * Detaches the loop devices of files below a directory that is the root of a machine: they would outlive its namespaces.
 *
 * @returns a line for each
 */
export async function detachLoopDevicesOf(root: string): Promise<string[]> {
  const columns = ['--list', '--noheadings', '--raw', '--output=NAME,BACK-INO,BACK-FILE'];
  const { stdout } = await promisify(execFile)('losetup', columns);
  const lines = await Promise.all(
    stdout.split('\n').map(async (line) => {
      const [name, inode, file = ''] = line.split(' ');
      const status = await lstat(join(root, file)).catch(() => undefined);
      if (name === undefined || String(status?.ino) !== inode) return [];
      await promisify(execFile)('losetup', ['--detach', name]);
      return [`loop device: ${name} of ${file}`];
    }),
  );
  return lines.flat();
}

/**
 * Finds the files of a machine that were made or changed since a time, and the empty directories that were made. Where
 * Debian packages were installed since, their files do not count.
 *
 * @param root - the directory that is the machine's root
 * @param began - in milliseconds since the epoch
 * @param ignored - paths in the machine below which everything may change
 */
export async function newFiles(root: string, began: number, ignored: readonly string[]): Promise<string[]> {
  const history = await lstat(join(root, 'var/log/apt/history.log')).catch(() => undefined);
  const since = Math.max(began, history?.mtimeMs ?? 0);
  const pruned = [...SYSTEM_PATHS, ...ignored].flatMap((path) => ['-path', join(root, path), '-prune', '-o']);
  const changed = ['-newerct', `@${since / 1000}`, '-printf', '%y %P\\0'];
  const { stdout } = await promisify(execFile)('find', [root, '-xdev', ...pruned, ...changed], {
    maxBuffer: 2 ** 30,
  });
  const lines = await Promise.all(
    stdout.split('\0').map(async (entry) => {
      const [type, path] = [entry.slice(0, 1), entry.slice(2)];
      if (path === '') return [];
      if (type === 'd' && !(await isNewAndEmpty(join(root, path), since))) return [];
      return [`${type === 'd' ? 'directory' : 'file'}: /${path}`];
    }),
  );
  return lines.flat().toSorted();
}

/** Only empty directories count; otherwise their entries do. */
async function isNewAndEmpty(directory: string, since: number): Promise<boolean> {
  const { birthtimeMs } = await lstat(directory);
  return birthtimeMs > since && (await readdir(directory)).length === 0;
}

/** Undefined if it has ended. */
function readProcess(pid: number): Process | undefined {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    const name = /^Name:\t(.*)$/m.exec(status)?.[1] ?? '';
    const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
    return { pid, parent: Number(/^PPid:\t(\d+)$/m.exec(status)?.[1]), command: command || `[${name}]` };
  } catch {
    return undefined;
  }
}
