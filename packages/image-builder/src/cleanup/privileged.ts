import { ImageError } from '../errors.ts';

/** Timeout of a command in milliseconds, because these commands hang on a device that does not respond. */
const TIME_LIMIT = 300_000;

/** Directories of the system's programs, independent of the environment. */
export const SYSTEM_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

export const isRoot = (): boolean => process.geteuid?.() === 0;

/**
 * Runs a command as root, through `sudo` if this process is not root. diskimage-builder also needs sudo without a
 * password.
 *
 * @throws ImageError `cleanup-failed` with the output of the command
 */
export async function runPrivileged(command: string, args: readonly string[]): Promise<void> {
  await (isRoot() ? run(command, args) : run('sudo', ['-n', command, ...args]));
}

/** Remedy if sudo asks for a password. */
export const NO_PASSWORD = 'add to sudoers: USER ALL=(ALL) NOPASSWD: ALL';

const SUDO_REMEDIES: readonly (readonly [message: RegExp, remedy: string])[] = [
  [/^sudo: .*must have a tty/m, 'sudoers requires a terminal; add to it: Defaults:USER !requiretty'],
  [/^sudo: .*(?:password|terminal) is required/m, NO_PASSWORD],
];

/** Returns the remedy for a message of sudo in the output of a command; undefined if there is none. */
export function sudoRemedy(output: string): string | undefined {
  return SUDO_REMEDIES.find(([message]) => message.test(output))?.[1];
}

/** Removes a directory tree, without crossing into other file systems. */
export async function removeTree(path: string): Promise<void> {
  const args = ['--recursive', '--force', '--one-file-system', '--', path];
  try {
    await run('rm', args);
  } catch (error) {
    if (isRoot()) throw error;
    // Files of a chroot belong to root.
    await runPrivileged('rm', args);
  }
}

async function run(command: string, args: readonly string[]): Promise<void> {
  const { execa } = await import('execa'); // imported on demand, as in process/command.ts
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
  const said = result.all?.trim() || result.shortMessage || 'the reason is unknown';
  const message = [`"${[command, ...args].join(' ')}" failed: ${said}`, sudoRemedy(said) ?? []].flat();
  throw new ImageError('cleanup-failed', message.join('; '), {
    cause: result.cause,
  });
}
