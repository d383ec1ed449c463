import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { findProgram } from '../process/find-program.ts';
import { type HiddenFiles, hiddenFiles } from './hidden-files.ts';
import { isRoot, SYSTEM_PATH } from './privileged.ts';

/** Timeout for the kernel to end all processes of a namespace, in milliseconds. */
const END_PERIOD = 10_000;

/** Message of unshare up to util-linux 2.38 when SIGKILL ended its command. unshare then exits with 1. */
export const SAYS_KILLED: RegExp = /^unshare: sigprocmask /;

const UNSHARE_OPTIONS = '--mount --propagation slave --pid --fork --kill-child'.split(' ');

/**
 * First process of a namespace, which adopts orphans. It ignores SIGCHLD, so that the kernel reaps them. It ends with
 * its input, which the kernel closes when this process dies.
 */
const INIT = ['env', '--ignore-signal=CHLD', 'cat'];

/**
 * Hides files, then becomes {@link INIT}. Its arguments are lists, each followed by `--`: mount points to detach, paths
 * to cover, secret files, INIT. The host's /proc leads to the files of every process of the host. It is detached, not
 * covered, because an unmount would uncover it.
 */
const HIDE = `set -e
fail() { echo "$1" >&2; exit 1; }
while [ "$1" != -- ]; do umount --lazy --no-canonicalize "$1" 2>/dev/null || :; shift; done
shift
mount -n -t proc -o nosuid,nodev,noexec proc /proc
[ "$(grep -c ' - proc ' /proc/self/mountinfo)" = 1 ] || fail "the host's /proc cannot be detached"
while [ "$1" != -- ]; do mount -n --no-canonicalize --bind /dev/null "$1"; shift; done
shift
while [ "$1" != -- ]; do [ ! -s "$1" ] || fail "$1 cannot be hidden"; shift; done
shift
exec "$@"`;

/**
 * Capability without which root cannot open the files of a host process that has more capabilities, such as this one.
 */
const DROPPED_CAPABILITY = '-sys_ptrace';

/**
 * A mount namespace and a process namespace for the commands of one build. When it ends, the kernel ends every process
 * in it and undoes every mount that was made in it, regardless of the location. It also ends when this process dies.
 *
 * Mounts of the host appear in it; its own mounts appear nowhere else.
 */
export class BuildNamespace {
  readonly #keeper: ChildProcess;
  readonly #unshare: string;
  readonly #nsenter: string;
  /** Prefix of each command if files are hidden. */
  readonly #restricted: readonly string[];

  private constructor(keeper: ChildProcess, unshare: string, nsenter: string, restricted: readonly string[]) {
    this.#keeper = keeper;
    this.#unshare = unshare;
    this.#nsenter = nsenter;
    this.#restricted = restricted;
  }

  /**
   * Opens a namespace.
   *
   * A command that runs as root and intends to read a hidden file on a disk can do so, through an unmount or through
   * the disk. It cannot read a file on a tmpfs of its own, which the namespace does not contain.
   *
   * @param onStart called with the id of the process group that keeps the namespace open
   * @param secretFiles files to hide from its commands
   * @returns the reason as text if the host does not allow namespaces
   */
  static async open(
    onStart: (pid: number) => void,
    secretFiles: readonly string[] = [],
  ): Promise<BuildNamespace | string> {
    if (!isRoot()) return 'only root can create namespaces';
    const [unshare, nsenter] = ['unshare', 'nsenter'].map((name) => findProgram(name, SYSTEM_PATH));
    if (unshare === undefined || nsenter === undefined || 'code' in unshare || 'code' in nsenter) {
      return 'the commands "unshare" and "nsenter" are not installed; install util-linux';
    }
    const setpriv = findProgram('setpriv', SYSTEM_PATH);
    const isHiding = secretFiles.length > 0;
    if (isHiding && 'code' in setpriv) return 'the command "setpriv" is not installed; install util-linux';
    const options = isHiding ? hidingOptions(await hiddenFiles(secretFiles)) : ['--mount-proc'];
    const keeper = spawn(unshare.path, [...UNSHARE_OPTIONS, ...options, ...INIT], {
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
    const restricted =
      isHiding && 'path' in setpriv
        ? [setpriv.path, `--bounding-set=${DROPPED_CAPABILITY}`, `--inh-caps=${DROPPED_CAPABILITY}`, '--']
        : [];
    return reason ?? new BuildNamespace(keeper, unshare.path, nsenter.path, restricted);
  }

  /** Returns the command that runs `command` in the namespace, with the same process group, output and exit. */
  enter(command: string, args: readonly string[], cwd: string): [command: string, args: string[]] {
    const directory = `/proc/${this.#keeper.pid}/ns`;
    const namespaces = [`--mount=${directory}/mnt`, `--pid=${directory}/pid_for_children`];
    // unshare forks, forwards the exit, and leaves SIGTERM to the command. nsenter would end with it.
    const own = [...this.#restricted, command, ...args];
    const fork = [this.#unshare, '--fork', '--kill-child', `--wd=${cwd}`, '--', ...own];
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

/** Arguments of unshare before {@link INIT}. */
function hidingOptions({ detached, covered, files }: HiddenFiles): string[] {
  return ['sh', '-c', HIDE, 'sh', ...detached, '--', ...covered, '--', ...files, '--'];
}
