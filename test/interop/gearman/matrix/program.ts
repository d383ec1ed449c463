import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Writable } from 'node:stream';
import type { TestContext } from 'node:test';

/** How to start a peer's program. */
export type Command = readonly [file: string, ...args: string[]];

/** A running program of a peer. It ends with the test. */
export interface Program {
  readonly stdin: Writable;
  /** Returns the next line that it prints. Rejects if it ends first. */
  readonly nextLine: () => Promise<string>;
  /** Returns the remaining lines until it ends. */
  readonly remainingLines: () => Promise<string[]>;
  /** Kills it, as in a crash. */
  readonly kill: () => Promise<void>;
}

/** File descriptors of a program's lines: its standard streams, or those that its children inherit. */
export const STREAMS = {
  own: { output: 1, input: 0 },
  children: { output: 2, input: 3 },
} as const;

/** Starts a program in a new process group, so that its children end with it. */
export function startProgram(
  t: TestContext,
  [file, ...args]: Command,
  streams: keyof typeof STREAMS = 'own',
): Program {
  const child = spawn(file, args, { stdio: ['pipe', 'pipe', 'pipe', 'pipe'], detached: true });
  const exited = once(child, 'exit');
  const { input, output } = STREAMS[streams];
  for (const stream of child.stdio) stream?.on('error', () => {}); // the program may have been killed
  for (const stream of [child.stdout, child.stderr]) stream.resume();
  const lines = createInterface(child.stdio[output] as NodeJS.ReadableStream)[Symbol.asyncIterator]();
  const kill = async (): Promise<void> => {
    if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) killGroup(child.pid);
    await exited;
  };
  t.after(kill);
  return {
    stdin: child.stdio[input] as Writable,
    nextLine: async () => {
      const line = await lines.next();
      if (line.done) throw new Error(`${file} ${args.join(' ')} ended`);
      return line.value;
    },
    remainingLines: async () => {
      const all: string[] = [];
      for await (const line of { [Symbol.asyncIterator]: () => lines }) all.push(line);
      return all;
    },
    kill,
  };
}

function killGroup(leader: number): void {
  try {
    process.kill(-leader, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error; // it may just have ended by itself
  }
}
