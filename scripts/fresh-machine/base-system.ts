import { access, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { availableDebian } from '../quickstart/machine.ts';
import { run } from './run.ts';

/**
 * A minimal Debian, of the release and from the mirror of this machine's apt. It is downloaded once.
 *
 * @param cache - the directory that keeps it
 * @returns the directory that is its root
 */
export async function installBaseSystem(cache: string): Promise<string> {
  const { release, mirror } = await availableDebian(process.env);
  const base = join(cache, `debian-${release}`);
  const isThere = await access(base).then(
    () => true,
    () => false,
  );
  if (isThere) return base;
  console.log(`fresh-machine: installing Debian ${release} to ${base}`);
  const unfinished = `${base}.new`;
  await rm(unfinished, { recursive: true, force: true });
  // Packages that a minimal system lacks and every machine with a user has.
  const include = ['--include=ca-certificates,sudo'];
  await run('debootstrap', ['--variant=minbase', ...include, release, unfinished, mirror]);
  // debootstrap leaves the package list of one archive; a new machine has none.
  await rm(join(unfinished, 'var/lib/apt/lists'), { recursive: true });
  await rm(join(unfinished, 'var/cache/apt/archives'), { recursive: true });
  await rename(unfinished, base);
  return base;
}
