import { readFile } from 'node:fs/promises';
import { isBelow } from './below.ts';
import { runPrivileged } from './privileged.ts';

/** The mount points in a text as of `/proc/self/mountinfo` (proc(5)), in the order of mounting. */
export function parseMountPoints(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.split(' ')[4])
    .filter((field) => field !== undefined)
    .map((field) =>
      field.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(parseInt(octal, 8))),
    );
}

/** The mount points at or below `roots`, the last one mounted first: in this order they can be unmounted. */
export async function mountsBelow(roots: readonly string[]): Promise<string[]> {
  const mountPoints = parseMountPoints(await readFile('/proc/self/mountinfo', 'latin1'));
  return mountPoints
    .map((path) => Buffer.from(path, 'latin1').toString())
    .filter((path) => isBelow(path, roots))
    .toReversed();
}

/**
 * Unmounts one mount point.
 *
 * @param lazily take it out of the tree even if it is in use.
 */
export async function unmount(mountPoint: string, lazily: boolean): Promise<void> {
  await runPrivileged('umount', [...(lazily ? ['--lazy'] : []), '--no-canonicalize', '--', mountPoint]);
}
