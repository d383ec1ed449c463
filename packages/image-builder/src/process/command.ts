import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { sudoRemedy } from '../cleanup/privileged.ts';
import { ImageError } from '../errors.ts';
import { errnoOf } from '../system-error.ts';
import { DecisiveLines } from './decisive-lines.ts';
import { findProgram } from './find-program.ts';
import { type Environment, inheritedEnvironment } from './inherited-environment.ts';
import { readLines } from './line-splitter.ts';

/** Time between SIGTERM and SIGKILL, in milliseconds, during which disk-image-create unmounts its chroot. */
export const GRACE_PERIOD = 10_000;

/** Milliseconds that a process group may outlive its leader, which is enough for a filter at the end of a pipe. */
const LINGER_PERIOD = 1_000;

const CANNOT_START: Readonly<Record<string, string>> = {
  ENOENT: 'is not installed, or not on PATH; install it or correct its path',
  ENOTDIR: 'does not exist; correct its path',
  ELOOP: 'is a link to itself; correct its path',
  EACCES: 'is not executable; grant the user that runs this program execute permission, or correct its path',
  EPERM: 'is not executable; grant the user that runs this program execute permission, or correct its path',
  ENOEXEC: 'is not a program for this machine; install one that is',
  ETXTBSY: 'is being written; try again when it is complete',
  E2BIG: 'gets more arguments and variables than the kernel accepts; shorten the elements or env-vars',
};

/** Transient errors of starting a command. */
const PASSING: ReadonlySet<string> = new Set(['ETXTBSY', 'EAGAIN', 'ENOMEM', 'EMFILE', 'ENFILE']);

/** Settings of {@link runCommand}. */
export interface CommandOptions {
  readonly cwd: string;
  /** The whole environment; default {@link inheritedEnvironment}. */
  readonly env?: Environment;
  readonly signal?: AbortSignal;
  /** Text for the standard input. Default: it is closed. */
  readonly input?: string;
  /** Called with each line of output. The next output is read when the returned promise resolves. */
  readonly onLine?: (line: string) => void | Promise<void>;
  /** Called with an incomplete last line, such as a prompt, each time it grows. */
  readonly onPartialLine?: (text: string) => void;
  /** Called with the process id, which is also the process group id. */
  readonly onStart?: (pid: number) => void;
  /** Wraps the command so that it runs elsewhere, with the same process group, output and exit status. */
  readonly wrap?: (command: string, args: readonly string[], cwd: string) => [string, string[]];
  /** Milliseconds between SIGTERM and SIGKILL; default {@link GRACE_PERIOD}. */
  readonly gracePeriod?: number;
}

/** Result of a command. */
export interface CommandResult {
  /** Exit code of the command; absent if a signal ended it. */
  readonly exitCode?: number;
  readonly signal?: string;
  /**
   * Output lines that show why the command failed, see {@link DecisiveLines}; the last lines if none shows an error.
   */
  readonly decisiveLines: readonly string[];
  /** The failed step of diskimage-builder: `install.d/50-agent`. */
  readonly step?: string;
  /** True if the output reports a full disk. */
  readonly diskFull: boolean;
  /** Describes the file system that was full when the command failed. */
  readonly fullDisk?: string;
}

/**
 * Runs a command in a new process group. No process of the group outlives the call.
 *
 * @throws ImageError `command-not-found`; `command-failed` if it may start later
 * @throws the signal's reason, once the group has ended
 */
export async function runCommand(
  command: string,
  args: readonly string[],
  {
    cwd,
    env = inheritedEnvironment(),
    signal,
    input,
    wrap,
    onStart,
    gracePeriod,
    ...listeners
  }: CommandOptions,
): Promise<CommandResult> {
  // Imported on demand, because execa has a hundred modules.
  const { execa } = await import('execa');
  signal?.throwIfAborted();
  // The wrapper would exit with 126 or 127, which the command itself may also do.
  const found = wrap && findProgram(command, env.PATH, cwd);
  if (found && 'code' in found) throw startError(command, cwd, found);
  const [program, programArgs] = wrap?.(command, args, cwd) ?? [command, args];
  const child = execa(program, programArgs, {
    cwd,
    env,
    extendEnv: false,
    ...(input === undefined ? { stdin: 'ignore' as const } : { input }),
    buffer: false,
    reject: false,
    killDescendants: true,
    forceKillAfterDelay: gracePeriod ?? GRACE_PERIOD,
    cleanup: false,
    ...(signal !== undefined && { cancelSignal: signal }),
  });
  const { pid } = child;
  if (pid === undefined) throw startError(command, cwd, await child);
  onStart?.(pid);

  const streams = [child.stdout, child.stderr];
  const ending = afterExit(child.nodeChildProcess, pid, streams);
  const output = await readOutput(streams, listeners).catch(async (error: unknown) => {
    signalGroup(pid, 'SIGKILL');
    await ending;
    throw error;
  });
  const [{ exitCode, signal: endedBy }] = await Promise.all([child, ending]);
  signal?.throwIfAborted();
  return {
    ...(exitCode !== undefined && { exitCode }),
    ...(endedBy !== undefined && { signal: endedBy }),
    ...output,
  };
}

/**
 * Makes the error for a command that could not be started, from the system's error code.
 *
 * @param installation remedy if the command is not installed
 */
export function startError(
  command: string,
  cwd: string,
  { code = '', cause }: { readonly code?: string | undefined; readonly cause?: unknown },
  installation?: string,
): ImageError {
  const options = { cause };
  if (!existsSync(cwd)) {
    const message = `the command "${command}" could not be started: its directory "${cwd}" does not exist; create it`;
    return new ImageError('directory-not-usable', message, options);
  }
  const known = code === 'ENOENT' && installation ? `is not installed; ${installation}` : CANNOT_START[code];
  const reason = known ?? `could not be started (${code || String(cause)}); check the host`;
  const kind = PASSING.has(code) ? 'command-failed' : 'command-not-found';
  return new ImageError(kind, `the command "${command}" ${reason}`, options);
}

/** Maximum length of an output line in an error. Longer lines are cut only here, after secrets are masked. */
const MAX_LINE_LENGTH = 500;

/** Describes the end of a command: `ended with exit code 1 in install.d/50-agent, saying: no such file`. */
export function describeEnd({
  exitCode,
  signal,
  step,
  decisiveLines,
}: Omit<CommandResult, 'diskFull'>): string {
  const where = step === undefined ? '' : ` in ${step}`;
  const lines = decisiveLines.map((line) => line.slice(0, MAX_LINE_LENGTH));
  const saying = [lines.join(' / '), sudoRemedy(lines.join('\n')) ?? []].flat();
  const said = lines.length === 0 ? '' : `, saying: ${saying.join('; ')}`;
  return `ended with ${signal ?? `exit code ${exitCode}`}${where}${said}`;
}

/**
 * Splits each stream into lines separately, because a program may write to one stream in the middle of a line of the
 * other.
 */
async function readOutput(
  streams: readonly Readable[],
  { onLine, onPartialLine }: Pick<CommandOptions, 'onLine' | 'onPartialLine'>,
): Promise<Pick<CommandResult, 'decisiveLines' | 'step' | 'diskFull'>> {
  const decisive = new DecisiveLines();
  let diskFull = false;
  const take = (line: string): void | Promise<void> => {
    diskFull ||= line.includes('No space left on device');
    decisive.add(line);
    return onLine?.(line);
  };
  await Promise.all(streams.map((stream) => readLines(stream, take, onPartialLine)));
  const { step, lines: decisiveLines } = decisive;
  return { decisiveLines, ...(step !== undefined && { step }), diskFull };
}

/** Ends the processes that the leader left in its group, and waits for the end of the output. */
async function afterExit(child: ChildProcess, leader: number, streams: readonly Readable[]): Promise<void> {
  const closed = Promise.all(
    streams.map((stream) => new Promise<void>((resolve) => stream.once('close', resolve))),
  );
  await once(child, 'exit');
  const until = performance.now() + LINGER_PERIOD;
  while (groupExists(leader) && performance.now() <= until) await delay(20);
  if (groupExists(leader)) signalGroup(leader, 'SIGKILL');
  // A process that left the group may keep the pipe open forever, so a silent period counts as the end.
  let chunks = -1;
  let seen = 0;
  for (const stream of streams) {
    stream.on('data', () => {
      seen += 1;
    });
  }
  while (streams.some((stream) => !stream.closed) && chunks !== seen) {
    chunks = seen;
    await Promise.race([closed, delay(LINGER_PERIOD)]);
  }
  for (const stream of streams) stream.destroy();
}

function groupExists(leader: number): boolean {
  try {
    process.kill(-leader, 0);
    return true;
  } catch (error) {
    return errnoOf(error) === 'EPERM';
  }
}

/** Sends a signal to every process of the group that this user may signal. An empty group is not an error. */
function signalGroup(leader: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-leader, signal);
  } catch (error) {
    // EPERM: all remaining processes run as root under sudo, which forwards signals.
    if (!['ESRCH', 'EPERM'].includes(errnoOf(error) ?? '')) throw error;
  }
}
