import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Returns the ids of all processes. */
export function processIds(): string[] {
  return readdirSync('/proc').filter((name) => /^\d+$/.test(name));
}

/**
 * Finds orphans of work in `directory`: processes that name it in their arguments or environment, mounts in it, and
 * loop devices of files in it. Returns one line for each.
 *
 * @param ignored - ids of earlier processes
 */
export function findOrphans(directory: string, ignored: ReadonlySet<string>): string[] {
  const processes = processIds()
    .filter((pid) => !ignored.has(pid))
    .filter((pid) => ['cmdline', 'environ'].some((file) => read('/proc', pid, file).includes(directory)))
    .map((pid) => `process ${pid}: ${read('/proc', pid, 'cmdline').replaceAll('\0', ' ')}`);
  const mounts = read('/proc/self/mountinfo')
    .split('\n')
    .map((line) => line.split(' ')[4] ?? '')
    .filter((target) => target.startsWith(`${directory}/`))
    .map((target) => `mount: ${target}`);
  const loops = readdirSync('/sys/block')
    .filter((name) => read('/sys/block', name, 'loop/backing_file').startsWith(`${directory}/`))
    .map((name) => `loop device: /dev/${name}`);
  return [...processes, ...mounts, ...loops];
}

/** Returns a file's text; empty if the file is missing or belongs to another user. */
function read(...path: string[]): string {
  try {
    return readFileSync(join(...path), 'utf8');
  } catch {
    return '';
  }
}
