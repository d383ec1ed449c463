import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join, relative } from 'node:path';
import { text as readAll } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { stripVTControlCharacters, styleText } from 'node:util';
import { Daemon } from './daemon.ts';
import { GrownLog } from './grown-log.ts';
import { findOrphans, processIds } from './orphans.ts';
import type { Progress } from './progress.ts';

/** The checkout, which is the working directory of a user who sees the paths here. */
const ROOT = join(import.meta.dirname, '../..');
const NODEPOOL_BUILDER = join(ROOT, 'node_modules/.bin/nodepool-builder');

/** Polling interval in milliseconds. */
const LOOK_INTERVAL = 200;

/** Time limit for quick steps, in milliseconds. */
const SETTLE_TIMEOUT = 15_000;

/** Max silence on a terminal, and elsewhere, in milliseconds. */
const SILENCE = process.stdout.isTTY ? 1_000 : 9_000;

/** Colours on a terminal, unless NO_COLOR is set. */
const coloured = (format: Parameters<typeof styleText>[0], text: string): string =>
  styleText(format, text, { stream: process.stdout });

/** Columns of the terminal, or of its substitute. */
const WIDTH = Math.max(40, process.stdout.columns ?? 100);

/** Matches a log line with output of a build or an upload, without time stamps and shell traces. */
const OUTPUT =
  / nodepool\.(?:image|manager)\S*: (?:[\d-]+ [\d:.]+ \| (?=[^\s+])|(?![\d-]+ [\d:.]+ \| ))([^\s+].*)/;

/** Options of a {@link Session}. */
export interface SessionOptions {
  /** Name of the session. */
  readonly name: string;
  /** Absolute path of the directory of its files: `nodepool.yaml`, `logs`, `daemon.log`. */
  readonly data: string;
  /** Progress from a line of the daemon's log. */
  readonly progressIn: (line: string) => Progress | undefined;
}

/** A run of `nodepool-builder --all-in-one` with progress on the terminal. */
export class Session {
  readonly config: string;
  readonly daemonLog: string;
  /** Aborts when the user stops the run, or when the daemon ends unexpectedly. */
  readonly signal: AbortSignal;
  readonly #options: SessionOptions;
  readonly #interrupted = new AbortController();
  readonly #before = new Set(processIds());
  #log: GrownLog | undefined;
  #daemon: Daemon | undefined;
  #lastLine = '';
  #isHandedOver = false;
  #saidAt = performance.now();
  #stepAt = performance.now();

  private constructor(options: SessionOptions) {
    this.#options = options;
    this.config = join(options.data, 'nodepool.yaml');
    this.daemonLog = join(options.data, 'daemon.log');
    this.signal = this.#interrupted.signal;
  }

  /** Does the work. After a failure, prints the reason, and this process exits with 1. */
  static async run(options: SessionOptions, work: (session: Session) => Promise<void>): Promise<void> {
    const session = new Session(options);
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      process.on(signal, () => session.#interrupted.abort(new Error(`stopped by ${signal}`)));
    }
    const ticker = setInterval(() => session.#signOfLife(), LOOK_INTERVAL);
    try {
      await work(session);
    } catch (error) {
      const reason: unknown = session.signal.aborted ? session.signal.reason : error;
      const message = `${options.name}: ${reason instanceof Error ? reason.message : String(reason)}`;
      session.#clearLine();
      console.error(`\n${styleText('red', message, { stream: process.stderr })}`);
      process.exitCode = 1;
    } finally {
      clearInterval(ticker);
    }
  }

  step(title: string): void {
    this.signal.throwIfAborted();
    this.#clearLine();
    this.#stepAt = this.#saidAt = performance.now();
    this.#lastLine = '';
    console.log(`\n${coloured('bold', `==> ${title}`)}`);
  }

  /** Prints text wrapped to the terminal's width. */
  tell(text: string): void {
    this.#print(wrapped(text, WIDTH - 4).replaceAll(/^(?=.)/gm, '    '));
  }

  /** Prints that a check succeeded. */
  success(line: string): void {
    this.tell(coloured('green', line));
  }

  /** Sets the current activity, for progress lines. */
  goesOn(line: string): void {
    this.#lastLine = stripVTControlCharacters(line).replaceAll(`${ROOT}/`, '');
  }

  #print(text: string): void {
    this.#clearLine();
    this.#saidAt = performance.now();
    console.log(text);
  }

  /** Reports a long activity and its duration so far. On a terminal the line replaces the previous one. */
  #signOfLife(): void {
    if (this.#isHandedOver || performance.now() - this.#saidAt < SILENCE) return;
    this.#saidAt = performance.now();
    const seconds = Math.round((performance.now() - this.#stepAt) / 1000);
    const time = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
    const line = `    ${time}  ${this.#lastLine}`.trimEnd().slice(0, WIDTH - 1);
    if (process.stdout.isTTY) process.stdout.write(`\r\u001B[K${coloured('dim', line)}`);
    else console.log(line);
  }

  #clearLine(): void {
    if (process.stdout.isTTY) process.stdout.write('\r\u001B[K');
  }

  /** Returns a path relative to the top of the project; a path outside it is returned unchanged. */
  shown(argument: string): string {
    return argument.startsWith(ROOT) ? relative(ROOT, argument) : argument;
  }

  /**
   * Runs the daemon with `nodepool.yaml` during `work`.
   *
   * @throws Error if it does not exit cleanly, or leaves something behind.
   */
  async serve(work: () => Promise<void>): Promise<void> {
    this.step('Starting nodepool-builder: job server, builder and manager in one process');
    const { config, daemonLog } = this;
    const args = ['--all-in-one', '-d', '-c', config];
    const log = this.shown(daemonLog);
    this.tell(
      `$ nodepool-builder ${args.map((argument) => this.shown(argument)).join(' ')}    (log: ${log})`,
    );
    const daemon = new Daemon({
      command: [process.execPath, NODEPOOL_BUILDER, ...args],
      logFile: daemonLog,
      onLost: (ending) =>
        this.#interrupted.abort(new Error(`the daemon ended unexpectedly (${ending}); see ${log}`)),
    });
    this.#daemon = daemon;
    this.#log = new GrownLog(daemonLog);
    try {
      await work();
      this.step('Stopping the daemon');
    } catch (error) {
      this.tell('stopping the daemon and what it runs');
      await daemon.stop(true).catch((failure: Error) => console.error(failure.message));
      throw error;
    }
    const ending = await daemon.stop(false);
    if (ending !== 0) throw new Error(`the daemon ended with ${ending}, not 0; see ${log}`);
    const orphans = await this.until(
      () => findOrphans(this.#options.data, this.#before),
      (found) => found.length === 0,
    );
    if (orphans.length > 0) throw new Error(`something was left behind:\n${orphans.join('\n')}`);
    this.success('no process, mount or loop device is left');
  }

  /** Yields the terminal to a program that writes to it. */
  async handOver<T>(work: () => Promise<T>): Promise<T> {
    this.#clearLine();
    this.#isHandedOver = true;
    try {
      return await work();
    } finally {
      this.#isHandedOver = false;
      this.#saidAt = performance.now();
    }
  }

  /** Makes the daemon reload its configuration. */
  reload(): void {
    this.#daemon?.reload();
  }

  /** Prints the progress since the last call; throws if a build or an upload failed. */
  async news(): Promise<readonly string[]> {
    this.signal.throwIfAborted();
    const lines = (await this.#log?.newLines()) ?? [];
    const last = lines.findLast((line) => OUTPUT.test(line));
    if (last !== undefined) this.goesOn(OUTPUT.exec(last)?.[1] ?? '');
    const found = lines.map(this.#options.progressIn).filter((progress) => progress !== undefined);
    for (const { text } of found) this.tell(text.replaceAll(`${ROOT}/`, ''));
    const failure = found.find(({ kind }) => kind === 'failure');
    if (failure === undefined) return found.map(({ text }) => text);
    throw new Error(`${failure.text}; see ${this.#logs()}`);
  }

  /** Prints progress until this many uploads are ready. */
  async uploadsReady(count: number): Promise<void> {
    for (let ready = 0; ready < count; await delay(LOOK_INTERVAL, undefined, { signal: this.signal })) {
      for (const text of await this.news()) if (/^upload .* is ready: /.test(text)) ready += 1;
    }
  }

  /** Runs a command of nodepool-builder and prints its output. */
  async show(command: string): Promise<void> {
    this.tell(`$ nodepool-builder ${command} -c ${this.shown(this.config)}`);
    this.#print(await this.#run(command, '-c', this.config));
  }

  /** Returns the list that a command prints with --json. */
  async listed<T>(command: string): Promise<readonly T[]> {
    return JSON.parse(await this.#run(command, '--json', '-c', this.config)) as readonly T[];
  }

  /** Polls until the result is good or time is up. Returns the last result. */
  async until<T>(ask: () => T | Promise<T>, good: (answer: T) => boolean): Promise<T> {
    for (
      const end = Date.now() + SETTLE_TIMEOUT;
      ;
      await delay(50, undefined, { signal: this.#interrupted.signal })
    ) {
      const answer = await ask();
      if (good(answer) || Date.now() > end) return answer;
    }
  }

  async #run(...args: readonly string[]): Promise<string> {
    const child = spawn(process.execPath, [NODEPOOL_BUILDER, ...args], {
      stdio: ['ignore', 'pipe', 'inherit'],
      signal: this.signal,
    });
    const [output, [code, signal]] = await Promise.all([readAll(child.stdout), once(child, 'exit')]);
    if (code === 0) return output.trim();
    throw new Error(`${args[0]} failed (${code ?? signal}); see ${this.#logs()}`);
  }

  #logs(): string {
    return `${this.shown(this.daemonLog)} and ${this.shown(join(this.#options.data, 'logs'))}`;
  }
}

/** Wraps a text to the given number of columns. Longer words are not broken. */
function wrapped(text: string, width: number): string {
  const words = text.split(/(?<=\S) (?=\S)/);
  const lines: string[] = [];
  for (const word of words) {
    const longer = `${lines.at(-1)} ${word}`;
    if (lines.length > 0 && stripVTControlCharacters(longer).length <= width)
      lines[lines.length - 1] = longer;
    else lines.push(lines.length === 0 ? word : `  ${word}`);
  }
  return lines.join('\n');
}
