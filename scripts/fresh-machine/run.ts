import { spawn } from 'node:child_process';
import { once } from 'node:events';

/** Runs a program to its end, with output to this process's output. */
export async function run(
  program: string,
  args: readonly string[],
  options: { cwd?: string } = {},
): Promise<void> {
  const child = spawn(program, args, { ...options, stdio: ['ignore', 'inherit', 'inherit'] });
  const [code, signal] = (await once(child, 'exit')) as [number | null, string | null];
  if (code !== 0) throw new Error(`${program} ${args.join(' ')} ended with ${code ?? signal}`);
}
