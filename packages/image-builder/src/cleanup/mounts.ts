import { readFile } from 'node:fs/promises';
import { runPrivileged } from './privileged.ts';

/** Returns whether a path is one of the roots or below one. All paths are absolute and without symbolic links. */
export function isPathInside(path: string, roots: readonly string[]): boolean {
  return roots.some((root) => path === root || path.startsWith(`${root}/`));
}

/** A line of `/proc/self/mountinfo` (proc(5)). */
export interface Mount {
  /** `254:0`; mounts with the same device show the same files. */
  readonly device: string;
  /** Directory of the file system that is mounted. */
  readonly root: string;
  readonly mountPoint: string;
  readonly type: string;
}

/** Lists the mounts that this process sees, in the order of mounting. */
export async function allMounts(): Promise<Mount[]> {
  return parseMounts(await readFile('/proc/self/mountinfo', 'latin1'));
}

/** Parses `/proc/self/mountinfo`, which was read as latin1. */
export function parseMounts(text: string): Mount[] {
  return text.split('\n').flatMap((line) => {
    const [before = '', after = ''] = line.split(' - ');
    const [, , device, root, mountPoint] = before.split(' ');
    const [type] = after.split(' ');
    if (device === undefined || root === undefined || mountPoint === undefined || !type) return [];
    return [{ device, root: decodePath(root), mountPoint: decodePath(mountPoint), type }];
  });
}

function decodePath(field: string): string {
  const bytes = field.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(parseInt(octal, 8)));
  return Buffer.from(bytes, 'latin1').toString();
}

/** Mount points at or below `roots` in the order in which they can be unmounted: the last one mounted first. */
export async function mountsBelow(roots: readonly string[]): Promise<string[]> {
  const mountPoints = (await allMounts()).map(({ mountPoint }) => mountPoint);
  return mountPoints.filter((path) => isPathInside(path, roots)).toReversed();
}

/**
 * Unmounts one mount point.
 *
 * @param lazily detach the mount point even if it is in use
 */
export async function unmount(mountPoint: string, lazily: boolean): Promise<void> {
  await runPrivileged('umount', [...(lazily ? ['--lazy'] : []), '--no-canonicalize', '--', mountPoint]);
}
