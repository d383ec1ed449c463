import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { promisify } from 'node:util';
import { type DebianMirror, debianFromApt, INDEX_TARGETS_ARGUMENTS } from './debian-mirror.ts';

/** Peak disk usage of a build, with caches and copies, rounded up. */
const NEEDED_BYTES = 6 * 2 ** 30;

/**
 * disk-image-create calls sudo, here in a session without a terminal.
 *
 * @throws Error if sudo would ask for a password.
 */
export async function requireSudo(): Promise<void> {
  const child = spawn('sudo', ['-n', 'true'], { detached: true, stdio: 'ignore' });
  const [code] = await once(child, 'exit');
  if (code === 0) return;
  throw new Error(
    'diskimage-builder needs sudo without a password. Run this as root, ' +
      'or let "sudo visudo" give your user a line such as: NAME ALL=(ALL) NOPASSWD: ALL',
  );
}

/** @throws Error if a build would fill the file system. */
export async function requireSpace(directory: string): Promise<void> {
  const { bavail, bsize } = await statfs(directory);
  if (bavail * bsize > NEEDED_BYTES) return;
  throw new Error(
    `${directory} has less than ${NEEDED_BYTES / 2 ** 30} GiB left, which a build needs; free space`,
  );
}

/** Returns the Debian release in this machine's apt sources. */
export async function debianMirror(): Promise<DebianMirror> {
  const { stdout } = await promisify(execFile)('apt-get', INDEX_TARGETS_ARGUMENTS).catch(() => ({
    stdout: '',
  }));
  return debianFromApt(stdout, (path) => readFileSync(path, 'utf8'));
}
