import { realpath, stat } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { unlessMissing } from '../system-error.ts';
import { allMounts, isPathInside, type Mount } from './mounts.ts';

/** A plan for hiding files in a mount namespace. */
export interface HiddenFiles {
  /**
   * Mount points to detach, in this order: every /proc of the host, and each memory file system that contains only
   * secret files.
   */
  readonly detached: readonly string[];
  /** Paths to cover, each of which leads to a secret file. */
  readonly covered: readonly string[];
  /** The secret files. */
  readonly files: readonly string[];
}

/** File systems that can be reached only through a mount, not through a device. */
const IN_MEMORY: ReadonlySet<string> = new Set(['tmpfs', 'ramfs']);

/** Plans how to hide existing files. */
export async function hiddenFiles(paths: readonly string[]): Promise<HiddenFiles> {
  const resolved = await Promise.all(paths.map((path) => unlessMissing(realpath(path))));
  const files = resolved.filter((path) => path !== undefined);
  const plan = planHiding(files, await allMounts());
  const keys = new Set(await Promise.all(files.map(identityOf)));
  const covered: string[] = [];
  // Another mount may be on top of one of the mounts.
  for (const path of plan.covered) if (keys.has(await identityOf(path))) covered.push(path);
  return { ...plan, covered };
}

async function identityOf(path: string): Promise<string> {
  const { dev, ino } = (await unlessMissing(stat(path, { bigint: true }))) ?? {};
  return `${dev}:${ino}`;
}

/** @param files absolute paths without symbolic links */
export function planHiding(files: readonly string[], mounts: readonly Mount[]): HiddenFiles {
  const detached = mounts.filter(({ type }) => type === 'proc').map(({ mountPoint }) => mountPoint);
  const covered: string[] = [];
  for (const file of files) {
    const own = mounts.findLast(({ mountPoint }) => isBelow(file, mountPoint));
    if (own === undefined) continue;
    const same = mounts.filter(({ device }) => device === own.device);
    const isDedicated = IN_MEMORY.has(own.type) && [dirname(file), file].includes(own.mountPoint);
    if (isDedicated) {
      detached.push(...same.map(({ mountPoint }) => mountPoint));
      continue;
    }
    const inside = join(own.root, relative(own.mountPoint, file)); // path in its file system
    for (const { root, mountPoint } of same) {
      if (isBelow(inside, root)) covered.push(join(mountPoint, relative(root, inside)));
    }
  }
  // A mount point may be listed twice; the last mount is on top.
  return { detached: detached.toReversed(), covered: [...new Set(covered)], files };
}

function isBelow(path: string, directory: string): boolean {
  return directory === '/' || isPathInside(path, [directory]);
}
