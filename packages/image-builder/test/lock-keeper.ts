import { readdirSync, readlinkSync } from 'node:fs';

/** Finds the process that holds a lock, which is the only one with the lock file open. */
export function keeperOf(lock: string): number | undefined {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .find((pid) => hasOpen(pid, lock));
}

function hasOpen(pid: number, path: string): boolean {
  try {
    const descriptors = readdirSync(`/proc/${pid}/fd`);
    return descriptors.some((name) => readlinkSync(`/proc/${pid}/fd/${name}`) === path);
  } catch {
    return false; // it has ended in the meantime, or is not ours
  }
}
