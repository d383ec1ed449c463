import { access, mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { debianMirror } from '../quickstart/machine.ts';
import { run } from './run.ts';

export const CHECKOUT = join(import.meta.dirname, '../..');

/** Directory of base systems, and of the systems that scripts create from them. */
const CACHE = join(CHECKOUT, '.cache/fresh-machine');

/** Directory of a script that creates machines. */
export interface MachineDirectory extends AsyncDisposable {
  readonly path: string;
}

/**
 * Creates the directory of a script that creates machines. Exits with an error unless root runs it.
 *
 * @param name - name of the script
 */
export async function openMachineDirectory(name: string): Promise<MachineDirectory> {
  if (process.getuid?.() !== 0) {
    console.error(`${name}: namespaces and a Debian system need root; run it with sudo`);
    process.exit(1);
  }
  // A terminal also sends these to the script's commands. The script waits for them, and removes its directory.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});
  const path = join(CACHE, `${name}-${process.pid}`);
  // Only for root, because registry settings may contain passwords.
  await mkdir(path, { recursive: true, mode: 0o700 });
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

/** A minimal Debian in a directory. */
export interface BaseSystem {
  readonly directory: string;
  /** Code name, such as `trixie`. */
  readonly suite: string;
  /** Returns the code name of the Debian in this machine's apt sources. */
  readonly hostSuite: string;
}

/**
 * Installs a minimal Debian from this machine's apt mirror. It is downloaded once.
 *
 * @param wanted - code name; default: the release of this machine's apt
 */
export async function installBaseSystem(wanted?: string): Promise<BaseSystem> {
  const { release: hostSuite, main } = await debianMirror();
  const suite = wanted ?? hostSuite;
  const directory = join(CACHE, `debian-${suite}`);
  const isThere = await access(directory).then(
    () => true,
    () => false,
  );
  if (isThere) return { directory, suite, hostSuite };
  console.log(`fresh-machine: installing Debian ${suite} to ${directory}`);
  const unfinished = `${directory}.new`;
  await rm(unfinished, { recursive: true, force: true });
  // Packages that a minimal system lacks, but every machine with a user has.
  const include = ['--include=ca-certificates,sudo'];
  await run('debootstrap', ['--variant=minbase', ...include, suite, unfinished, main]);
  // debootstrap leaves the package list of one archive, which a new machine does not have.
  await rm(join(unfinished, 'var/lib/apt/lists'), { recursive: true });
  await rm(join(unfinished, 'var/cache/apt/archives'), { recursive: true });
  await rename(unfinished, directory);
  return { directory, suite, hostSuite };
}
