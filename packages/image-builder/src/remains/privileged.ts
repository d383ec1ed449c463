import { ImageError } from '../errors.ts';

/** Milliseconds that one of these commands may take: they hang on a device that does not answer. */
const TIME_LIMIT = 300_000;

/** Where the programs of the system lie, whatever the environment says. */
export const SYSTEM_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** Whether this process is root. */
export const isRoot = (): boolean => process.geteuid?.() === 0;

/**
 * Runs a command as root: as it is, or through `sudo` if this process is not root (diskimage-builder needs sudo
 * without a password as well).
 *
 * @throws ImageError `remains-not-cleared` with what the command said
 */
export async function runPrivileged(command: string, args: readonly string[]): Promise<void> {
  await (isRoot() ? run(command, args) : run('sudo', ['-n', command, ...args]));
}

/** Removes a directory and all below it, but nothing on another file system. */
export async function removeTree(path: string): Promise<void> {
  const args = ['--recursive', '--force', '--one-file-system', '--', path];
  try {
    await run('rm', args);
  } catch (error) {
    if (isRoot()) throw error;
    // What a chroot leaves belongs to root.
    await runPrivileged('rm', args);
  }
}

async function run(command: string, args: readonly string[]): Promise<void> {
  const { execa } = await import('execa'); // not at the top, as in process/command.ts
  const result = await execa(command, args, {
    cwd: '/',
    env: { PATH: SYSTEM_PATH },
    extendEnv: false,
    stdin: 'ignore',
    all: true,
    reject: false,
    timeout: TIME_LIMIT,
    cleanup: false,
  });
  if (!result.failed) return;
  const said = result.all?.trim() || result.shortMessage;
  throw new ImageError('remains-not-cleared', `"${[command, ...args].join(' ')}" failed: ${said}`, {
    cause: result.cause,
  });
}
