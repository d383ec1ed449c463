import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { type BenchmarkContext, unlessAborted } from './benchmark.ts';
import { processorTime } from './processor-time.ts';

/** Options for starting a program. */
export type Command = readonly [command: string, ...args: string[]];

/** Timeout of a response in seconds. Some libraries lose a job and wait for it forever. */
const LIMIT = 60;

/** A process that responds to each line with a line, and runs until the end of the benchmark. */
export class Program {
  readonly #command: Command;
  readonly #child: ChildProcess;
  readonly #signal: AbortSignal;
  readonly #replies: AsyncIterator<string>;
  readonly #exited: Promise<unknown>;

  private constructor(command: Command, { signal, after }: BenchmarkContext) {
    const [file, ...args] = command;
    this.#command = command;
    this.#signal = signal;
    const child = spawn(file, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#child = child;
    child.stdin.on('error', () => {}); // reported as a missing response
    this.#replies = createInterface(child.stdout)[Symbol.asyncIterator]();
    this.#exited = once(child, 'exit');
    after(() => this.end());
  }

  static start(command: Command, context: BenchmarkContext): Program {
    return new Program(command, context);
  }

  /**
   * @param limit timeout of a response in seconds; default 60
   * @throws Error if the process ends or the timeout passes before the response; the signal's reason
   */
  async ask(order: string, limit: number = LIMIT): Promise<string> {
    this.#child.stdin?.write(`${order}\n`);
    const late = AbortSignal.timeout(limit * 1000);
    const reply = unlessAborted(this.#replies.next(), AbortSignal.any([this.#signal, late]));
    const { done, value } = await reply.catch((error: unknown) => {
      if (error !== late.reason) throw error;
      throw new Error(`${this.#command.join(' ')} did not reply to "${order}" in ${limit} s`);
    });
    if (done === true) throw new Error(`${this.#command.join(' ')} ended and did not reply to "${order}"`);
    return value;
  }

  async end(): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) this.#child.kill('SIGTERM');
    await this.#exited;
  }

  /** Returns the seconds of processor time since the start. */
  async processorTime(): Promise<number> {
    return (await processorTime(this.#child.pid)).own;
  }

  /** Like {@link ask}, for a response of numbers. */
  async askNumbers(order: string): Promise<number[]> {
    return (await this.ask(order)).split(' ').map(Number);
  }
}
