import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { TestContext } from 'node:test';
import { end } from '../../../../test/fixtures/job-server-process.ts';

const PROGRAM = join(import.meta.dirname, 'leader-process.ts');

/** The process of `leader-process.ts`. */
export class LeaderProcess {
  readonly child: ChildProcess;
  readonly #lines: AsyncIterator<string>;

  private constructor(location: string) {
    this.child = spawn(process.execPath, [...process.execArgv.filter(isForSources), PROGRAM, location], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const output = this.child.stdout as NonNullable<ChildProcess['stdout']>;
    this.#lines = createInterface(output)[Symbol.asyncIterator]();
  }

  /** Starts the process for the duration of the test. */
  static start(t: TestContext, location: string): LeaderProcess {
    const leader = new LeaderProcess(location);
    t.after(() => end(leader.child, 'SIGKILL'));
    return leader;
  }

  /** Returns the rest of the next line that starts with this word; undefined if the process ends first. */
  async says(word: string): Promise<string | undefined> {
    for (;;) {
      const { value, done } = await this.#lines.next();
      if (done === true) return undefined;
      if (value === word || value.startsWith(`${word} `)) return value.slice(word.length + 1);
    }
  }
}

function isForSources(option: string): boolean {
  return option.startsWith('--conditions') || option.startsWith('--disable-warning');
}
