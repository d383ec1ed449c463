import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import { basename } from 'node:path';
import { inSlices } from '../slices.ts';
import { errnoOf } from '../system-error.ts';

/** `O_ACCMODE` of open(2): mask of the access mode. */
const ACCESS_MODE = 0o3;

export interface Writers {
  /** {@link fileKey} of each requested file that a process has open for writing. */
  readonly files: ReadonlySet<string>;
  /** True if every process could be inspected. Only root can inspect other users' processes; init does not count. */
  readonly complete: boolean;
}

/** Identity of a file, the same for all its paths. */
export function fileKey({ dev, ino }: { readonly dev: number; readonly ino: number }): string {
  return `${dev}:${ino}`;
}

/**
 * Scans all processes for those that have a file with one of these names open for writing (proc(5), fd and fdinfo),
 * because Node's inotify events do not report that a file is closed.
 */
export async function findWriters(fileNames: Iterable<string>): Promise<Writers> {
  const names = new Set(fileNames);
  const files = new Set<string>();
  let complete = true;
  const processes = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  const scan = <T>(pid: string, read: () => readonly T[]): readonly T[] => {
    try {
      return read();
    } catch (error) {
      complete &&= pid === '1' || !['EACCES', 'EPERM'].includes(errnoOf(error) ?? '');
      return [];
    }
  };
  function* descriptors(): Iterable<readonly [pid: string, descriptor: string]> {
    for (const pid of processes) {
      for (const descriptor of scan(pid, () => readdirSync(`/proc/${pid}/fd`))) yield [pid, descriptor];
    }
  }
  // One process may have tens of thousands of descriptors.
  await inSlices(descriptors(), ([pid, descriptor]) => {
    for (const key of scan(pid, () => writtenFile(pid, descriptor, names))) files.add(key);
  });
  return { files, complete };
}

/** Returns the key of the file, if it has one of the names and is open for writing. */
function writtenFile(pid: string, descriptor: string, names: ReadonlySet<string>): string[] {
  const link = `/proc/${pid}/fd/${descriptor}`;
  try {
    // The name is checked first, because stat of another file may hang on a network file system that does not respond.
    if (!names.has(basename(readlinkSync(link)))) return [];
    const info = readFileSync(`/proc/${pid}/fdinfo/${descriptor}`, 'utf8');
    const flags = Number.parseInt(/^flags:\s*(\d+)/m.exec(info)?.[1] ?? '0', 8);
    return (flags & ACCESS_MODE) === 0 ? [] : [fileKey(statSync(link))];
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return []; // closed in the meantime
    throw error;
  }
}
