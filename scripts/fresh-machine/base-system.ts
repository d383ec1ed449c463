import { access, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { debianMirror } from '../quickstart/machine.ts';
import { run } from './run.ts';

/** A minimal Debian in a directory. */
export interface BaseSystem {
  readonly directory: string;
  /** Code name, such as `trixie`. */
  readonly suite: string;
  /** Code name of the Debian in this machine's apt sources. */
  readonly hostSuite: string;
}

/**
 * Installs a minimal Debian from the mirror of this machine's apt. It is downloaded once.
 *
 * @param cache - the directory that keeps it
 * @param wanted - code name; default: the release of this machine's apt
 */
export async function installBaseSystem(cache: string, wanted?: string): Promise<BaseSystem> {
  const { release: hostSuite, main } = await debianMirror();
  const suite = wanted ?? hostSuite;
  const directory = join(cache, `debian-${suite}`);
  const isThere = await access(directory).then(
    () => true,
    () => false,
  );
  if (isThere) return { directory, suite, hostSuite };
  console.log(`fresh-machine: installing Debian ${suite} to ${directory}`);
  const unfinished = `${directory}.new`;
  await rm(unfinished, { recursive: true, force: true });
  // Packages that a minimal system lacks and every machine with a user has.
  const include = ['--include=ca-certificates,sudo'];
  await run('debootstrap', ['--variant=minbase', ...include, suite, unfinished, main]);
  // debootstrap leaves the package list of one archive; a new machine has none.
  await rm(join(unfinished, 'var/lib/apt/lists'), { recursive: true });
  await rm(join(unfinished, 'var/cache/apt/archives'), { recursive: true });
  await rename(unfinished, directory);
  return { directory, suite, hostSuite };
}
