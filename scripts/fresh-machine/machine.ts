import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { type BaseSystem, CHECKOUT } from './base-system.ts';
import { copyRegistrySettings } from './registry-settings.ts';
import { run } from './run.ts';

/** A Debian system in a directory, with a clone of the checkout. */
export interface Machine {
  /** Directory on this machine that is the root of the machine. */
  readonly root: string;
  /** True if commands run as an ordinary user. */
  readonly user: boolean;
  /** Path of the clone inside the machine. */
  readonly checkout: string;
  /** Home of the user who runs commands. */
  readonly home: string;
  /** PATH of the commands. */
  readonly path: string;
  /** Further environment variables of the commands. */
  readonly environment: Readonly<Record<string, string>>;
}

/** Ordinary user of a machine. */
export const USER = { name: 'builder', id: 1000 };

/**
 * Copies a base system, and sets its host names and registry settings.
 *
 * @returns the environment of its commands
 */
export async function copyBaseSystem(
  base: BaseSystem,
  root: string,
): Promise<Readonly<Record<string, string>>> {
  await run('cp', ['--archive', '--reflink=auto', base.directory, root]);
  for (const file of ['/etc/resolv.conf', '/etc/hosts', '/etc/hostname']) {
    writeFileSync(join(root, file), execFileSync('cat', [file]));
  }
  return copyRegistrySettings(root, base);
}

/** Copies a base system, and adds Node, npm, the registry settings and a clone. */
export async function prepareMachine(options: {
  readonly base: BaseSystem;
  readonly root: string;
  readonly user: boolean;
}): Promise<Machine> {
  const { base, root, user } = options;
  const settings = await copyBaseSystem(base, root);
  copyNode(root);
  const home = user ? `/home/${USER.name}` : '/root';
  if (user) createUser(root);
  const checkout = join(home, 'nodepool-builder');
  // The checkout may belong to a user other than root.
  const clone = [
    '-c',
    'safe.directory=*',
    'clone',
    '--quiet',
    '--no-hardlinks',
    CHECKOUT,
    join(root, checkout),
  ];
  await run('git', clone);
  if (user) await run('chown', ['-R', `${USER.id}:${USER.id}`, join(root, home)]);
  const path = ['/usr/local/bin', '/usr/bin', '/bin'];
  if (!user) path.unshift('/usr/local/sbin', '/usr/sbin', '/sbin');
  return { root, user, checkout, home, path: path.join(delimiter), environment: { ...settings, HOME: home } };
}

/** Copies Node and npm from this machine, as installed outside any project. */
export function copyNode(root: string): void {
  const outside = (process.env.PATH ?? '').split(delimiter).filter((path) => !path.includes('node_modules'));
  const find = (name: string): string =>
    realpathSync(
      execFileSync('/bin/sh', ['-c', `command -v ${name}`], {
        encoding: 'utf8',
        env: { PATH: outside.join(delimiter) },
      }).trim(),
    );
  const local = join(root, 'usr/local');
  cpSync(find('node'), join(local, 'bin/node'));
  chmodSync(join(local, 'bin/node'), 0o755);
  mkdirSync(join(local, 'lib/node_modules'), { recursive: true });
  // npm-cli.js is in bin/ of the package.
  cpSync(dirname(dirname(find('npm'))), join(local, 'lib/node_modules/npm'), { recursive: true });
  for (const name of ['npm', 'npx']) {
    symlinkSync(`../lib/node_modules/npm/bin/${name}-cli.js`, join(local, 'bin', name));
  }
  try {
    execFileSync('chroot', [root, '/usr/local/bin/node', '--version']);
  } catch (cause) {
    throw new Error(
      "this machine's Node does not run on a minimal Debian; put one of nodejs.org first in PATH",
      { cause },
    );
  }
}

/** Creates an ordinary user who may use sudo without a password. */
function createUser(root: string): void {
  const { name, id } = USER;
  execFileSync('chroot', [root, 'useradd', '--create-home', '--shell=/bin/bash', `--uid=${id}`, name]);
  writeFileSync(join(root, 'etc/sudoers.d', name), `${name} ALL=(ALL) NOPASSWD: ALL\n`, { mode: 0o440 });
}
