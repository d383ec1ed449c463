import { type ChildProcess, type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';

/** Program to kill, and the times of the kills. */
export interface KilledProgramOptions {
  /** File name of a program in this directory. */
  readonly program: string;
  readonly args: readonly string[];
  /** File for its standard error. */
  readonly log: string;
  /** Max lifetime in milliseconds after it has reported that it works. */
  readonly maxLifetime: number;
}

/** A program that is killed at random times and restarted. */
export class KilledProgram {
  readonly #options: KilledProgramOptions;
  #child: ChildProcess | undefined;
  #isKilled = true;
  #isStopped = false;
  #kills = 0;
  readonly #done: Promise<void>;

  constructor(options: KilledProgramOptions) {
    this.#options = options;
    this.#done = this.#run();
  }

  get kills(): number {
    return this.#kills;
  }

  /** Kills it once more, and then lets it run. */
  spare(): void {
    this.#isKilled = false;
    this.#child?.kill('SIGKILL');
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#child?.kill('SIGKILL');
    await this.#done;
  }

  async #run(): Promise<void> {
    while (!this.#isStopped) {
      const child = this.#start();
      const ended = once(child, 'close');
      await Promise.race([once(child.stdout, 'data'), ended]);
      // The time of the kill is random, so there is no event to wait for.
      const life = Math.random() * this.#options.maxLifetime;
      const timer = this.#isKilled ? setTimeout(() => child.kill('SIGKILL'), life) : undefined;
      await ended;
      clearTimeout(timer);
      this.#kills += 1;
    }
  }

  #start(): ChildProcessByStdio<null, Readable, null> {
    const { program, args, log } = this.#options;
    const stderr = openSync(log, 'a');
    try {
      const node = ['--conditions=@nodepool-builder/source', '--disable-warning=ExperimentalWarning'];
      const path = join(import.meta.dirname, program);
      const child = spawn(process.execPath, [...node, path, ...args], { stdio: ['ignore', 'pipe', stderr] });
      this.#child = child;
      return child as ChildProcessByStdio<null, Readable, null>;
    } finally {
      closeSync(stderr);
    }
  }
}
