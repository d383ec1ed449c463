import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { findProgram } from '../process/find-program.ts';
import { isRoot, SYSTEM_PATH } from './privileged.ts';

/** Time limit for the kernel to end all processes of a namespace, in milliseconds. */
const END_PERIOD = 10_000;

/** Message of unshare up to util-linux 2.38 when SIGKILL ended its command; unshare exits with 1 then. */
export const SAYS_KILLED: RegExp = /^unshare: sigprocmask /;

const UNSHARE_OPTIONS = '--mount --propagation slave --pid --fork --kill-child --mount-proc'.split(' ');

/**
 * First process of a namespace, which adopts orphans. It ignores SIGCHLD, so that the kernel reaps them. It ends with its
 * input, which the kernel closes when this process dies.
 */
const INIT = ['env', '--ignore-signal=CHLD', 'cat'];

/**
 * A mount namespace and a process namespace for the commands of one build. When it ends, the kernel ends every process
 * in it and undoes every mount that was made in it, wherever they are. It also ends when this process dies.
 *
 * Mounts of the host appear in it; its own mounts appear nowhere else.
 */
export class BuildNamespace {
  readonly #keeper: ChildProcess;
  readonly #unshare: string;
  readonly #nsenter: string;

  private constructor(keeper: ChildProcess, unshare: string, nsenter: string) {
    this.#keeper = keeper;
    this.#unshare = unshare;
    this.#nsenter = nsenter;
  }

  /**
   * Opens a namespace.
   *
   * @param onStart called with the id of the process group that keeps the namespace
   * @returns the reason as text if the host does not allow namespaces
   */
  static async open(onStart: (pid: number) => void): Promise<BuildNamespace | string> {
    if (!isRoot()) return 'only root may make namespaces';
    const [unshare, nsenter] = ['unshare', 'nsenter'].map((name) => findProgram(name, SYSTEM_PATH));
    if (unshare === undefined || nsenter === undefined || 'code' in unshare || 'code' in nsenter) {
      return 'the commands "unshare" and "nsenter" are not installed; install util-linux';
    }
    const keeper = spawn(unshare.path, [...UNSHARE_OPTIONS, ...INIT], {
      cwd: '/',
      detached: true,
      env: { PATH: SYSTEM_PATH, LC_ALL: 'C' },
    });
    let complaint = '';
    keeper.stderr.on('data', (chunk: Buffer) => (complaint += String(chunk)));
    keeper.stdin.on('error', () => {}); // it has ended
    if (keeper.pid !== undefined) onStart(keeper.pid);
    keeper.stdin.write('\n');
    const ended = (once(keeper, 'close') as Promise<[number | null]>).then(
      ([code]) => complaint.trim() || `unshare ended with exit code ${code}`,
      (error: Error) => error.message,
    );
    const ready = once(keeper.stdout, 'data').then(() => undefined);
    const reason = await Promise.race([ready, ended]);
    return reason ?? new BuildNamespace(keeper, unshare.path, nsenter.path);
  }

  /** The command that runs `command` in the namespace, with the same process group, output and exit. */
  enter(command: string, args: readonly string[], cwd: string): [command: string, args: string[]] {
    const directory = `/proc/${this.#keeper.pid}/ns`;
    const namespaces = [`--mount=${directory}/mnt`, `--pid=${directory}/pid_for_children`];
    // unshare forks, forwards the exit, and leaves SIGTERM to the command; nsenter would die of it.
    const fork = [this.#unshare, '--fork', '--kill-child', `--wd=${cwd}`, '--', command, ...args];
    return [this.#nsenter, ['--no-fork', ...namespaces, '--', ...fork]];
  }

  /** Ends all processes in the namespace and undoes its mounts. */
  async close(): Promise<void> {
    if (this.#keeper.exitCode !== null || this.#keeper.signalCode !== null) return;
    const exit = once(this.#keeper, 'exit');
    this.#keeper.stdin?.end();
    const over = new AbortController();
    await Promise.race([exit, delay(END_PERIOD, undefined, { signal: over.signal }).catch(() => undefined)]);
    over.abort();
  }
}
