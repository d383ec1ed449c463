import { readFile } from 'node:fs/promises';

/** Clock ticks per second (`getconf CLK_TCK`), the same on all Linux machines. */
const TICKS = 100;

/** Processor time in seconds. */
export interface ProcessorTime {
  /** Time of the process itself, with all its threads. */
  readonly own: number;
  /** Time of the children that have ended. */
  readonly children: number;
}

/** Reads the processor time of a process since its start (proc(5), `utime` to `cstime`). */
export async function processorTime(pid: number | undefined): Promise<ProcessorTime> {
  const line = await readFile(`/proc/${pid}/stat`, 'utf8');
  const fields = line.slice(line.lastIndexOf(')') + 2).split(' ');
  const [user = 0, system = 0, ...children] = fields.slice(11, 15).map((ticks) => Number(ticks) / TICKS);
  return { own: user + system, children: children.reduce((sum, seconds) => sum + seconds, 0) };
}
