import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

/** Time limit for stopping the daemon, in milliseconds. Unmounting a large build takes a while. */
const STOP_TIMEOUT = 60_000;

/** Exit code or signal that ended a process. */
type Ending = number | NodeJS.Signals;

/** Start options of a {@link Daemon}. */
export interface DaemonOptions {
  readonly command: readonly [file: string, ...args: string[]];
  /** File that receives all output. */
  readonly logFile: string;
  /** Called if the daemon ends before {@link Daemon.stop} was called. */
  readonly onLost: (ending: Ending) => void;
}

/** A nodepool-builder daemon in the foreground (`-d`). */
export class Daemon {
  readonly #child: ChildProcess;
  readonly #ended: Promise<Ending>;
  #stopping = false;

  constructor({ command: [file, ...args], logFile, onLost }: DaemonOptions) {
    const log = openSync(logFile, 'w');
    // A new session, so that Ctrl-C in the terminal only reaches it through stop(). Debian omits the directories
    // of fstrim and similar tools from the PATH of ordinary users.
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

  /** Makes the daemon reload its configuration. */
  reload(): void {
    this.#child.kill('SIGHUP');
  }

  /**
   * Stops the daemon and waits until it has ended.
   *
   * @param urgently - whether to stop running jobs instead of waiting for them
   * @throws Error if it does not end in time and was killed.
   */
  async stop(urgently: boolean): Promise<Ending> {
    this.#stopping = true;
    this.#child.kill('SIGTERM');
    // Any second signal stops running jobs. It differs from the first, because Linux may merge two equal signals.
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
