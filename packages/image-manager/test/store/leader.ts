import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const PROGRAM = join(import.meta.dirname, 'leader-process.ts');

/** The process of `leader-process.ts`. */
export class LeaderProcess implements AsyncDisposable {
  readonly child: ChildProcess;
  readonly #lines: AsyncIterator<string>;

  constructor(location: string) {
    this.child = spawn(process.execPath, [...process.execArgv.filter(isForSources), PROGRAM, location], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const output = this.child.stdout as NonNullable<ChildProcess['stdout']>;
    this.#lines = createInterface(output)[Symbol.asyncIterator]();
  }

  /** The rest of the next line that begins with this word; undefined if the process ends without one. */
  async says(word: string): Promise<string | undefined> {
    for (;;) {
      const { value, done } = await this.#lines.next();
      if (done === true) return undefined;
      if (value === word || value.startsWith(`${word} `)) return value.slice(word.length + 1);
    }
  }

  async kill(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const exited = once(this.child, 'exit');
    this.child.kill('SIGKILL');
    await exited;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }
}

function isForSources(option: string): boolean {
  return option.startsWith('--conditions') || option.startsWith('--disable-warning');
}
