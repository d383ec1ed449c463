import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { errnoOf } from '../src/system-error.ts';

/** Whether a process runs; one that only waits to be reaped does not. */
export async function isRunning(pid: number): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch((error: unknown) => {
    // ESRCH: the process ended after the file was opened.
    if (!['ENOENT', 'ESRCH'].includes(errnoOf(error) ?? '')) throw error;
    return undefined;
  });
  return stat !== undefined && !/\) [ZX] /.test(stat);
}

/** Ids, in this namespace, of the processes that run with this word as an argument. */
export async function processesWith(word: string): Promise<number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number);
  const found = await Promise.all(
    pids.map(async (pid) => {
      const words = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
      return words.split('\0').includes(word) && (await isRunning(pid));
    }),
  );
  return pids.filter((_, index) => found[index]);
}

/** Waits for the end of a process that is not a child of this one. */
export async function untilGone(pid: number): Promise<void> {
  while (await isRunning(pid)) await delay(5);
}
