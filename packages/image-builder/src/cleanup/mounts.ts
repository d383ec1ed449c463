import { readFile } from 'node:fs/promises';
import { runPrivileged } from './privileged.ts';

/** Returns whether a path is one of the roots or below one. All paths are absolute and without symbolic links. */
export function isPathInside(path: string, roots: readonly string[]): boolean {
  return roots.some((root) => path === root || path.startsWith(`${root}/`));
}

/** Parses the mount points in `/proc/self/mountinfo` (proc(5)), in the order of mounting. */
export function parseMountPoints(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.split(' ')[4])
    .filter((field) => field !== undefined)
    .map(decodeOctal);
}

function decodeOctal(field: string): string {
  return field.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(parseInt(octal, 8)));
}

/** Decodes a path in `/proc/self/mountinfo`, which was read as latin1. */
export function decodeMountPath(field: string): string {
  return Buffer.from(decodeOctal(field), 'latin1').toString();
}

/** Mount points at or below `roots` in the order in which they can be unmounted: the last one mounted first. */
export async function mountsBelow(roots: readonly string[]): Promise<string[]> {
  const mountPoints = parseMountPoints(await readFile('/proc/self/mountinfo', 'latin1'));
  return mountPoints
    .map((path) => Buffer.from(path, 'latin1').toString())
    .filter((path) => isPathInside(path, roots))
    .toReversed();
}

/**
 * Unmounts one mount point.
 *
 * @param lazily detach the mount point even if it is in use
 */
export async function unmount(mountPoint: string, lazily: boolean): Promise<void> {
  await runPrivileged('umount', [...(lazily ? ['--lazy'] : []), '--no-canonicalize', '--', mountPoint]);
}
