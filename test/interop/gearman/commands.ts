import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import type { TestContext } from 'node:test';

/** Outcome of a command. */
export interface CommandResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs Debian's `gearman` or `gearadmin` against a server on this machine, to its end. */
export async function run(
  command: 'gearman' | 'gearadmin',
  port: number,
  args: readonly string[],
  input = '',
): Promise<CommandResult> {
  const child = spawn(command, ['-h', '127.0.0.1', '-p', String(port), ...args]);
  child.stdin.on('error', () => {}); // the command may not read its input
  child.stdin.end(input);
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close'),
  ]);
  return { code: code as number | null, stdout, stderr };
}

/**
 * Starts `gearman -w`, which runs a program for each job, with the payload as its input. It ends with the test.
 *
 * @returns a function that kills it, as in a crash
 */
export function startWorker(
  t: TestContext,
  port: number,
  functionName: string,
  ...program: string[]
): () => Promise<void> {
  const options = ['-w', '-h', '127.0.0.1', '-p', String(port), '-f', functionName];
  // A new process group, because the program must end with it.
  const child = spawn('gearman', [...options, '--', ...program], { stdio: 'ignore', detached: true });
  const exited = once(child, 'exit');
  const kill = async (): Promise<void> => {
    if (child.pid !== undefined && child.signalCode === null) process.kill(-child.pid, 'SIGKILL');
    await exited;
  };
  t.after(kill);
  return kill;
}
