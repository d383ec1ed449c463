import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import { basename } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { errnoOf } from '../system-error.ts';

/** Longest stretch of looking without a turn for the event loop, in milliseconds. */
const SLICE = 3;

/** `O_ACCMODE` of open(2): the bits that tell reading from writing. */
const ACCESS_MODE = 0o3;

/** What a look at all processes showed. */
export interface Writers {
  /** The {@link fileKey} of each file in question that some process holds open for writing. */
  readonly files: ReadonlySet<string>;
  /** Whether every process could be looked at. Other users' can only by root; init does not count. */
  readonly complete: boolean;
}

/** What makes two paths the same file. */
export function fileKey({ dev, ino }: { readonly dev: number; readonly ino: number }): string {
  return `${dev}:${ino}`;
}

/**
 * Looks through all processes once for those that hold one of `paths` open for writing (proc(5), fd and
 * fdinfo): inotify as Node has it does not tell when a file is closed.
 */
export async function findWriters(paths: Iterable<string>): Promise<Writers> {
  const names = new Set(Array.from(paths, (path) => basename(path)));
  const files = new Set<string>();
  let complete = true;
  let sliceEnd = performance.now() + SLICE;
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      for (const key of filesWrittenBy(pid, names)) files.add(key);
    } catch (error) {
      complete &&= pid === '1' || !['EACCES', 'EPERM'].includes(errnoOf(error) ?? '');
    }
    if (performance.now() > sliceEnd) {
      await nextTurn();
      sliceEnd = performance.now() + SLICE;
    }
  }
  return { files, complete };
}

function filesWrittenBy(pid: string, names: ReadonlySet<string>): string[] {
  return readdirSync(`/proc/${pid}/fd`).flatMap((descriptor) => {
    const link = `/proc/${pid}/fd/${descriptor}`;
    try {
      // The name first: stat of any file at all might hang, on a network file system that does not answer.
      if (!names.has(basename(readlinkSync(link)))) return [];
      const info = readFileSync(`/proc/${pid}/fdinfo/${descriptor}`, 'utf8');
      const flags = Number.parseInt(/^flags:\s*(\d+)/m.exec(info)?.[1] ?? '0', 8);
      return (flags & ACCESS_MODE) === 0 ? [] : [fileKey(statSync(link))];
    } catch (error) {
      if (errnoOf(error) === 'ENOENT') return []; // closed in the meantime
      throw error;
    }
  });
}
