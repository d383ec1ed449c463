import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

/** Time limit for the daemon to end, in milliseconds: unmounting a large build takes a while. */
const STOP_TIMEOUT = 60_000;

/** How a process ended: the exit code, or the signal. */
type Ending = number | NodeJS.Signals;

/** How a {@link Daemon} is started. */
export interface DaemonOptions {
  readonly command: readonly [file: string, ...args: string[]];
  /** Receives all its output. */
  readonly logFile: string;
  /** Called if it ends before {@link Daemon.stop} was called. */
  readonly onLost: (ending: Ending) => void;
}

/** A nodepool-builder daemon in the foreground (`-d`). */
export class Daemon {
  readonly #child: ChildProcess;
  readonly #ended: Promise<Ending>;
  #stopping = false;

  constructor({ command: [file, ...args], logFile, onLost }: DaemonOptions) {
    const log = openSync(logFile, 'w');
    // A session of its own: Ctrl-C in the terminal must reach it through stop() alone. Debian leaves the
    // directories of fstrim and the like out of the PATH of anyone but root.
    this.#child = spawn(file, args, {
      detached: true,
      stdio: ['ignore', log, log],
      env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin` },
    });
    closeSync(log);
    this.#ended = once(this.#child, 'exit').then(([code, signal]) => code ?? signal);
    this.#child.once('exit', (code, signal) => {
      if (!this.#stopping) onLost(code ?? signal ?? 'SIGKILL');
    });
  }

  /** Has it reload its configuration. */
  reload(): void {
    this.#child.kill('SIGHUP');
  }

  /**
   * Ends the daemon and waits until it has ended.
   *
   * @param urgently - do not wait for the jobs that run: stop them
   * @throws Error if it does not end in time; it is killed then.
   */
  async stop(urgently: boolean): Promise<Ending> {
    this.#stopping = true;
    this.#child.kill('SIGTERM');
    // Any second signal makes it urgent. It differs from the first, because Linux may merge two equal signals.
    if (urgently) this.#child.kill('SIGINT');
    const ended = new AbortController();
    const timeout = delay(STOP_TIMEOUT, undefined, { signal: ended.signal }).catch(() => undefined);
    const ending = await Promise.race([this.#ended, timeout]);
    ended.abort();
    if (ending !== undefined) return ending;
    this.#child.kill('SIGKILL');
    await this.#ended;
    throw new Error(`the daemon did not end within ${STOP_TIMEOUT / 1000} s after SIGTERM and was killed`);
  }
}
