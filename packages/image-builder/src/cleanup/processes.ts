import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { NUMBER, objectOf, type SettingsOf, TEXT } from '../settings-schema.ts';
import { errnoOf } from '../system-error.ts';
import { isPathInside } from './mounts.ts';
import { runPrivileged } from './privileged.ts';

/** Environment variable with the build's directory, which identifies the processes of its commands. */
export const MARKER = 'NODEPOOL_BUILD_DIRECTORY';

/** Timeout for processes to end after SIGTERM, and again after SIGKILL, in milliseconds. */
const END_TIMEOUT = 5_000;

/** Schema of a {@link ProcessGroupRecord}. */
export const PROCESS_GROUP_RECORD = objectOf({
  /** `/proc/sys/kernel/random/boot_id`, because process ids restart with each boot. */
  boot: TEXT,
  leader: NUMBER,
  /** Start time of the leader in clock ticks since boot, because its process id may be reused. */
  started: TEXT,
});

/** A process group that a build started. */
export type ProcessGroupRecord = SettingsOf<typeof PROCESS_GROUP_RECORD>;

/** Traits that identify the processes of a build. */
export interface ProcessTraits {
  readonly roots: readonly string[];
  readonly groups: readonly ProcessGroupRecord[];
}

/** Makes the record of the group that `leader` leads. It is read synchronously, before the leader can be reaped. */
export function recordOf(leader: number): ProcessGroupRecord | undefined {
  const stat = readStat(leader);
  return stat && { boot: bootId(), leader, started: stat.started };
}

/** Ids of all live processes with one of the traits, and of their descendants. */
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
  // The set grows during the loop, so that all descendants are found.
  for (const pid of found) for (const child of stats) if (child.parent === pid) found.add(child.pid);
  return [...found];
}

/** Ends all processes with one of the traits. Returns false if some remain. */
export async function endProcesses(traits: ProcessTraits): Promise<boolean> {
  for (const pid of findProcesses(traits)) await kill(pid, 'SIGTERM');
  const killAt = performance.now() + END_TIMEOUT;
  for (; performance.now() < killAt + END_TIMEOUT; await delay(20)) {
    const left = findProcesses(traits);
    if (left.length === 0) return true;
    if (performance.now() >= killAt) for (const pid of left) await kill(pid, 'SIGKILL');
  }
  return false;
}

function bootId(): string {
  return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
}

/** Returns whether the leader's id was reused, which means that its whole group has ended. */
function isReplaced({ leader, started }: ProcessGroupRecord): boolean {
  const stat = readStat(leader);
  return stat !== undefined && stat.started !== started;
}

/** Returns whether a process has its root or working directory in one of the directories, or their marker. */
function isIn(pid: number, roots: readonly string[]): boolean {
  const links = ['cwd', 'root'].map((name) => attempt(() => readlinkSync(`/proc/${pid}/${name}`)));
  if (links.some((path) => path !== undefined && isPathInside(path, roots))) return true;
  const environment = attempt(() => readFileSync(`/proc/${pid}/environ`, 'utf8'))?.split('\0') ?? [];
  return roots.some((root) => environment.includes(`${MARKER}=${root}`));
}

/** Fields of `/proc/<pid>/stat` (proc(5)); undefined for a process that does not exist or is a zombie. */
function readStat(pid: number) {
  const text = attempt(() => readFileSync(`/proc/${pid}/stat`, 'latin1'));
  // The second field, the name in parentheses, may contain any character, so only the fields after it are parsed.
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
    // The process runs as root under sudo. It may have ended in the meantime.
    if (errnoOf(error) === 'EPERM') {
      await runPrivileged('kill', ['-s', signal.slice('SIG'.length), `${pid}`]).catch(() => undefined);
    }
  }
}

/** Reads from `/proc`; returns undefined if the process has ended or may not be inspected. */
function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
