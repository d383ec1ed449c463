import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Logger } from '@nodepool-builder/image-builder';

/** Timeout of a notification, in milliseconds. */
const TIMEOUT = 10_000;

/**
 * Notifies systemd of the state of a service with `Type=notify`, and keeps its watchdog from acting. Without systemd it
 * does nothing.
 *
 * Node.js has no datagram sockets of the Unix domain, so the program `systemd-notify` sends the messages, and the unit
 * needs `NotifyAccess=all`. For the watchdog it runs twice per interval, which is minutes long.
 */
export class Systemd {
  readonly #socket: string | undefined;
  readonly #watchdog: NodeJS.Timeout | undefined;
  readonly #logger: Logger;
  #status: (() => string) | undefined;
  #last: Promise<void> = Promise.resolve();
  #isFailing = false;

  /** Removes systemd's settings from an environment, so that child processes do not inherit them. */
  constructor(environment: NodeJS.ProcessEnv, logger: Logger) {
    const { NOTIFY_SOCKET: socket, WATCHDOG_USEC: watchdog, WATCHDOG_PID: pid } = environment;
    for (const name of ['NOTIFY_SOCKET', 'WATCHDOG_USEC', 'WATCHDOG_PID']) delete environment[name];
    this.#socket = socket;
    this.#logger = logger;
    const isWatched =
      socket !== undefined && Number(watchdog) > 0 && Number(pid ?? process.pid) === process.pid;
    if (!isWatched) return;
    const send = (): void => this.#send('WATCHDOG=1', ...(this.#status ? [`STATUS=${this.#status()}`] : []));
    this.#watchdog = setInterval(send, Number(watchdog) / 1000 / 2).unref();
  }

  /**
   * Reports that the service has started, or has reloaded its configuration.
   *
   * @param status returns the line that `systemctl status` shows
   */
  ready(status: () => string): void {
    this.#status = status;
    this.#send('READY=1', `STATUS=${status()}`);
  }

  /** Reports that the service reloads its configuration; {@link ready} follows. */
  reloading(): void {
    this.#send(
      'RELOADING=1',
      `MONOTONIC_USEC=${process.hrtime.bigint() / 1000n}`,
      'STATUS=Reading the configuration',
    );
  }

  /** Reports that the service stops as soon as its running work has ended. */
  stopping(status: string): void {
    this.#status = undefined;
    this.#send('STOPPING=1', `STATUS=${status}`);
  }

  /** Waits until systemd has received every message, and sends no further one. */
  async close(): Promise<void> {
    clearInterval(this.#watchdog);
    await this.#last;
  }

  /** Sends a message after the ones before it. */
  #send(...assignments: readonly string[]): void {
    const socket = this.#socket;
    if (socket !== undefined) this.#last = this.#last.then(() => this.#sendNow(socket, assignments));
  }

  async #sendNow(socket: string, assignments: readonly string[]): Promise<void> {
    try {
      const env = { ...process.env, NOTIFY_SOCKET: socket };
      await promisify(execFile)('systemd-notify', assignments, { env, timeout: TIMEOUT });
      this.#isFailing = false;
    } catch (error) {
      // systemd decides what a missing message means. Only the first failure in a row is logged.
      if (!this.#isFailing) this.#logger.warn(`cannot notify systemd: ${(error as Error).message}`);
      this.#isFailing = true;
    }
  }
}
