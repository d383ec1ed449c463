import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { unlessMissing } from '../src/system-error.ts';

/** Whether a process runs; one that only waits to be reaped does not. */
export async function isRunning(pid: number): Promise<boolean> {
  const stat = await unlessMissing(readFile(`/proc/${pid}/stat`, 'utf8'));
  return stat !== undefined && !/\) [ZX] /.test(stat);
}

/** Waits for the end of a process that is not a child of this one. */
export async function untilGone(pid: number): Promise<void> {
  while (await isRunning(pid)) await delay(5);
}
