import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { ImageError } from '../errors.ts';
import { findProgram } from './find-program.ts';
import { type Environment, inheritedEnvironment } from './inherited-environment.ts';
import { LineSplitter } from './line-splitter.ts';
import { groupExists, signalGroup } from './process-group.ts';

/** Time between SIGTERM and SIGKILL in milliseconds: disk-image-create unmounts in it. */
export const GRACE_PERIOD = 10_000;

/** How long the rest of a group may outlive its leader: long enough for a filter at the end of a pipe. */
const LINGER_PERIOD = 1_000;

const LAST_LINES = 20;

const CANNOT_START: Readonly<Record<string, string>> = {
  ENOENT: 'is not installed, or not on PATH; install it or correct its path',
  ENOTDIR: 'is not there; correct its path',
  ELOOP: 'is a link to itself; correct its path',
  EACCES: 'may not be executed; give the user that runs this program the right to, or correct its path',
  EPERM: 'may not be executed; give the user that runs this program the right to, or correct its path',
  ENOEXEC: 'is not a program of this machine; install one that is',
  ETXTBSY: 'is being written; wait until that has ended',
  E2BIG: 'gets more arguments and variables than the kernel takes; shorten the elements or env-vars',
};

/** Transient errors of starting a command. */
const PASSING: ReadonlySet<string> = new Set(['ETXTBSY', 'EAGAIN', 'ENOMEM', 'EMFILE', 'ENFILE']);

/** Settings of {@link runCommand}. */
export interface CommandOptions {
  readonly cwd: string;
  /** The whole environment; default {@link inheritedEnvironment}. */
  readonly env?: Environment;
  readonly signal?: AbortSignal;
  /** Called with each line of output; a promise holds the command back until it is kept. */
  readonly onLine?: (line: string) => void | Promise<void>;
  /** Called with what there is of a line that has not ended yet, such as a prompt, whenever it has grown. */
  readonly onPartialLine?: (text: string) => void;
  /** Called with the process id, which is the process group's id as well. */
  readonly onStart?: (pid: number) => void;
  /** Wraps the command so that it runs elsewhere, with the same process group, output and exit status. */
  readonly wrap?: (command: string, args: readonly string[], cwd: string) => [string, string[]];
  /** Milliseconds between SIGTERM and SIGKILL; default {@link GRACE_PERIOD}. */
  readonly gracePeriod?: number;
}

/** How a command ended. */
export interface CommandResult {
  /** Absent if a signal ended it. */
  readonly exitCode?: number;
  readonly signal?: string;
  /** The end of its output, blank lines left out. */
  readonly lastLines: readonly string[];
  /** Whether it said that a disk is full. */
  readonly diskFull: boolean;
}

/**
 * Runs a command as the leader of a process group of its own, its input closed, and leaves no process of that
 * group behind.
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
    wrap,
    onStart,
    gracePeriod = GRACE_PERIOD,
    ...listeners
  }: CommandOptions,
): Promise<CommandResult> {
  // Here, not at the top: it is a hundred modules, and who starts no command does without.
  const { execa } = await import('execa');
  signal?.throwIfAborted();
  // Its wrapper would end with 126 or 127, as the command itself may.
  const found = wrap && findProgram(command, env.PATH, cwd);
  if (found && 'code' in found) throw startError(command, cwd, found);
  const [program, programArgs] = wrap?.(command, args, cwd) ?? [command, args];
  const child = execa(program, programArgs, {
    cwd,
    env,
    extendEnv: false,
    stdin: 'ignore',
    all: true,
    buffer: false,
    reject: false,
    killDescendants: true,
    forceKillAfterDelay: gracePeriod,
    cleanup: false,
    ...(signal !== undefined && { cancelSignal: signal }),
  });
  const { pid } = child;
  if (pid === undefined) throw startError(command, cwd, await child);
  onStart?.(pid);

  const ending = afterExit(child.nodeChildProcess, pid, child.all);
  const output = await readOutput(child.all, listeners).catch(async (error: unknown) => {
    signalGroup(pid, 'SIGKILL');
    await ending;
    throw error;
  });
  const [result] = await Promise.all([child, ending]);
  signal?.throwIfAborted();
  return {
    ...(result.exitCode !== undefined && { exitCode: result.exitCode }),
    ...(result.signal !== undefined && { signal: result.signal }),
    ...output,
  };
}

/** The error of a command that could not be started, by the code of the system. */
export function startError(
  command: string,
  cwd: string,
  { code = '', cause }: { readonly code?: string | undefined; readonly cause?: unknown },
): ImageError {
  const options = { cause };
  if (!existsSync(cwd)) {
    const message = `the command "${command}" could not be started: its directory "${cwd}" is not there; make it`;
    return new ImageError('directory-not-usable', message, options);
  }
  const reason = CANNOT_START[code] ?? `could not be started (${code || String(cause)}); look at the host`;
  const kind = PASSING.has(code) ? 'command-failed' : 'command-not-found';
  return new ImageError(kind, `the command "${command}" ${reason}`, options);
}

async function readOutput(
  stream: NodeJS.ReadableStream,
  { onLine, onPartialLine }: Pick<CommandOptions, 'onLine' | 'onPartialLine'>,
): Promise<Pick<CommandResult, 'lastLines' | 'diskFull'>> {
  const splitter = new LineSplitter();
  const lastLines: string[] = [];
  let diskFull = false;
  const take = async (lines: readonly string[]): Promise<void> => {
    for (const line of lines) {
      diskFull ||= line.includes('No space left on device');
      if (line.trim() !== '') lastLines.push(line.trimEnd());
      const held = onLine?.(line);
      if (held !== undefined) await held;
    }
    lastLines.splice(0, lastLines.length - LAST_LINES);
  };
  try {
    for await (const chunk of stream) {
      await take(splitter.push(chunk as Buffer));
      if (splitter.rest !== '') onPartialLine?.(splitter.rest);
    }
  } catch (error) {
    // The stream was destroyed under a process that outlived its group; what it would say is of no interest.
    if ((error as NodeJS.ErrnoException).code !== 'ERR_STREAM_PREMATURE_CLOSE') throw error;
  }
  await take(splitter.end());
  return { lastLines, diskFull };
}

async function afterExit(child: ChildProcess, leader: number, output: Readable): Promise<void> {
  await once(child, 'exit');
  await endRest(leader);
  await drain(output);
}

/** Ends what the leader left behind in its group. */
async function endRest(leader: number): Promise<void> {
  for (const until = performance.now() + LINGER_PERIOD; groupExists(leader); await delay(20)) {
    if (performance.now() > until) {
      signalGroup(leader, 'SIGKILL');
      return;
    }
  }
}

/**
 * Waits for the end of the output. A process that left the group may hold the pipe open for ever: then silence
 * is the end.
 */
async function drain(stream: Readable): Promise<void> {
  let chunks = -1;
  let seen = 0;
  stream.on('data', () => {
    seen += 1;
  });
  while (!stream.closed && chunks !== seen) {
    chunks = seen;
    await Promise.race([once(stream, 'close'), delay(LINGER_PERIOD)]);
  }
  stream.destroy();
}
