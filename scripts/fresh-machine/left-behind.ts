import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';

/** Time limit for processes and mounts that are ending, in milliseconds. */
const SETTLE_TIMEOUT = 5_000;

/**
 * Paths that may change: apt keeps packages and logs there, setup disables package services, and Debian's e2fsprogs,
 * skopeo and systemd-analyze keep state.
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

/** Polls until the result is empty or time is up. Resolves with the last result. */
export async function settled(ask: () => readonly string[]): Promise<readonly string[]> {
  for (const end = Date.now() + SETTLE_TIMEOUT; ; await delay(50)) {
    const answer = ask();
    if (answer.length === 0 || Date.now() > end) return answer;
  }
}

/** Returns the descendants of a process below its children. */
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

/** Returns the mounts that a process sees, without the root and the kernel's own file systems. */
export function mountsOf(pid: number): string[] {
  return readFileSync(`/proc/${pid}/mountinfo`, 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[4] ?? '/')
    .filter((target) => !/^\/(?:(?:proc|sys|dev)(?:\/|$)|$)/.test(target))
    .map((target) => `mount: ${target}`);
}

/**
 * Detaches loop devices of files below the root directory of a machine, because they would outlive its namespaces.
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
 * Finds files of a machine that were created or changed since a time, and empty directories that were created. Ignores
 * files of Debian packages that were installed since.
 *
 * @param root - root directory of the machine
 * @param began - time in milliseconds since the epoch
 * @param ignored - paths in the machine whose content may change
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

/** Only empty directories are reported; otherwise their entries are. */
async function isNewAndEmpty(directory: string, since: number): Promise<boolean> {
  const { birthtimeMs } = await lstat(directory);
  return birthtimeMs > since && (await readdir(directory)).length === 0;
}

/** Undefined if the process has ended. */
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
