import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Writable } from 'node:stream';
import type { TestContext } from 'node:test';

/** How a peer's program is started. */
export type Command = readonly [file: string, ...args: string[]];

/** A program of a peer while it runs; it ends with the test. */
export interface Program {
  readonly stdin: Writable;
  /** The next line that it prints. Rejects if it ends first. */
  readonly nextLine: () => Promise<string>;
  /** The remaining lines until it ends. */
  readonly remainingLines: () => Promise<string[]>;
  /** Ends it as a crash does. */
  readonly kill: () => Promise<void>;
}

/** Where a program prints its lines and reads them: its standard streams, or those that its own children inherit. */
export const STREAMS = {
  own: { output: 1, input: 0 },
  children: { output: 2, input: 3 },
} as const;

/** Starts a program in a process group of its own, so that its children end with it. */
export function startProgram(
  t: TestContext,
  [file, ...args]: Command,
  streams: keyof typeof STREAMS = 'own',
): Program {
  const child = spawn(file, args, { stdio: ['pipe', 'pipe', 'pipe', 'pipe'], detached: true });
  const exited = once(child, 'exit');
  const { input, output } = STREAMS[streams];
  for (const stream of child.stdio) stream?.on('error', () => {}); // of a program that was killed
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
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error; // it has just ended by itself
  }
}
