import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { type BenchmarkContext, unlessAborted } from './benchmark.ts';

/** Options for starting a program. */
export type Command = readonly [command: string, ...args: string[]];

/** Time limit for an answer in seconds: some libraries lose a job and wait for it forever. */
const LIMIT = 60;

/** A process that answers each line with a line. It runs until the end of the benchmark. */
export class Program {
  readonly #command: Command;
  readonly #child: ChildProcess;
  readonly #signal: AbortSignal;
  readonly #answers: AsyncIterator<string>;

  private constructor(command: Command, { signal, after }: BenchmarkContext) {
    const [file, ...args] = command;
    this.#command = command;
    this.#signal = signal;
    const child = spawn(file, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#child = child;
    child.stdin.on('error', () => {}); // the missing answer reports it
    this.#answers = createInterface(child.stdout)[Symbol.asyncIterator]();
    const exited = once(child, 'exit');
    after(async () => {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM');
      await exited;
    });
  }

  /** Starts a process. */
  static start(command: Command, context: BenchmarkContext): Program {
    return new Program(command, context);
  }

  /** @throws Error if the process ends, or a minute passes, in place of an answer; the signal's reason */
  async ask(order: string): Promise<string> {
    this.#child.stdin?.write(`${order}\n`);
    const late = AbortSignal.timeout(LIMIT * 1000);
    const answer = unlessAborted(this.#answers.next(), AbortSignal.any([this.#signal, late]));
    const { done, value } = await answer.catch((error: unknown) => {
      if (error !== late.reason) throw error;
      throw new Error(`${this.#command.join(' ')} did not answer "${order}" in ${LIMIT} s`);
    });
    if (done === true) throw new Error(`${this.#command.join(' ')} ended and did not answer "${order}"`);
    return value;
  }

  /** As {@link ask}, for an answer of numbers. */
  async askNumbers(order: string): Promise<number[]> {
    return (await this.ask(order)).split(' ').map(Number);
  }
}
