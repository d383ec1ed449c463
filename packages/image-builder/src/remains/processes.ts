import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { errnoOf } from '../system-error.ts';
import { isBelow } from './below.ts';
import { runPrivileged } from './privileged.ts';

/** Set in the environment of all commands of a build: the build's directory. Its processes are known by it. */
export const MARKER = 'NODEPOOL_BUILD_DIRECTORY';

/** How long processes have to end after SIGTERM, and again after SIGKILL, in milliseconds. */
const PATIENCE = 5_000;

/** A process group that a build started. */
export interface ProcessGroupRecord {
  /** `/proc/sys/kernel/random/boot_id`: process ids begin anew with each boot. */
  readonly boot: string;
  readonly leader: number;
  /** When the leader started, in clock ticks since boot: a process with the same id may be another by now. */
  readonly started: string;
}

/** What the processes of a build are known by. */
export interface ProcessTraits {
  /** Directories of the build. */
  readonly roots: readonly string[];
  readonly groups: readonly ProcessGroupRecord[];
}

interface ProcessStat {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
  readonly session: number;
  readonly started: string;
}

/** The record of the group that `leader` leads. Reads at once, before the leader can end. */
export function recordOf(leader: number): ProcessGroupRecord | undefined {
  const stat = readStat(leader);
  return stat && { boot: bootId(), leader, started: stat.started };
}

/** The ids of all living processes with one of the traits, and of their descendants. */
export function findProcesses({ roots, groups }: ProcessTraits): number[] {
  const stats = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => readStat(Number(name)) ?? [])
    .filter(({ pid }) => pid !== process.pid && pid !== 1);
  const boot = bootId();
  const ours = groups.filter((group) => group.boot === boot && !isReplaced(group));
  const found = new Set<number>();
  for (const { pid, group, session } of stats) {
    const inGroup = ours.some(({ leader }) => leader === group || leader === session);
    if (inGroup || isIn(pid, roots)) found.add(pid);
  }
  // A set that grows as it is walked: descendants of descendants are found as well.
  for (const pid of found) for (const child of stats) if (child.parent === pid) found.add(child.pid);
  return [...found];
}

/** Ends all processes with one of the traits; false if some did not end. */
export async function endProcesses(traits: ProcessTraits): Promise<boolean> {
  for (const pid of findProcesses(traits)) await kill(pid, 'SIGTERM');
  for (const until = performance.now() + PATIENCE; performance.now() < until; await delay(20)) {
    if (findProcesses(traits).length === 0) return true;
  }
  for (const until = performance.now() + PATIENCE; performance.now() < until; await delay(20)) {
    const left = findProcesses(traits);
    if (left.length === 0) return true;
    for (const pid of left) await kill(pid, 'SIGKILL');
  }
  return false;
}

function bootId(): string {
  return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
}

/** Whether another process leads under the id of the leader, which has then ended with its whole group. */
function isReplaced({ leader, started }: ProcessGroupRecord): boolean {
  const stat = readStat(leader);
  return stat !== undefined && stat.started !== started;
}

/** Whether a process works in one of the directories, or says that it belongs to one. */
function isIn(pid: number, roots: readonly string[]): boolean {
  const links = ['cwd', 'root'].map((name) => attempt(() => readlinkSync(`/proc/${pid}/${name}`)));
  if (links.some((path) => path !== undefined && isBelow(path, roots))) return true;
  const environment = attempt(() => readFileSync(`/proc/${pid}/environ`, 'utf8'))?.split('\0') ?? [];
  return roots.some((root) => environment.includes(`${MARKER}=${root}`));
}

/** Fields of `/proc/<pid>/stat` (proc(5)); undefined for a process that is not there or waits to be reaped. */
function readStat(pid: number): ProcessStat | undefined {
  const text = attempt(() => readFileSync(`/proc/${pid}/stat`, 'latin1'));
  // The second field, the name in parentheses, may hold anything: count from its end.
  const [state = '', parent, group, session, ...rest] =
    text?.slice(text.lastIndexOf(')') + 2).split(' ') ?? [];
  const started = rest[15];
  if (started === undefined || 'ZX'.includes(state)) return undefined;
  return { pid, parent: Number(parent), group: Number(group), session: Number(session), started };
}

async function kill(pid: number, signal: NodeJS.Signals): Promise<void> {
  try {
    process.kill(pid, signal);
  } catch (error) {
    // A process that sudo made root's; that it may have ended in the meantime is no failure.
    if (errnoOf(error) === 'EPERM') {
      await runPrivileged('kill', ['-s', signal.slice('SIG'.length), `${pid}`]).catch(() => undefined);
    }
  }
}

/** The result of reading in `/proc`; undefined if the process has ended or may not be looked at. */
function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
