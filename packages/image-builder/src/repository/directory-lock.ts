import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { hostname } from 'node:os';
import { ImageError } from '../errors.ts';
import { runCommand, startError } from '../process/command.ts';
import { inheritedEnvironment } from '../process/inherited-environment.ts';
import { RecordType } from '../record-directory.ts';
import { NUMBER, objectOf, TEXT } from '../settings-schema.ts';
import { errnoOf } from '../system-error.ts';
import type { Layout } from './layout.ts';

/** Exit code of `flock` if another process holds the lock. */
const HELD_BY_ANOTHER = 75;

/** Seconds to wait for the lock, because the keeper of a process that was just killed may still be ending. */
const RELEASE_PERIOD = 1;

/**
 * Program that holds the lock while its standard input is open. It runs in its own session and ignores the usual
 * signals, so that neither Ctrl-C nor a service manager ends it before its owner. The kernel closes its input when the
 * owner dies.
 */
const KEEPER = 'trap "" TERM INT HUP; echo held; exec cat';

const OWNER = new RecordType(objectOf({ pid: NUMBER, host: TEXT }));

/** Exclusive lock on a directory, which the kernel releases when this process dies. */
export class DirectoryLock {
  readonly #keeper: ChildProcess;
  readonly #layout: Layout;
  #released = false;

  private constructor(keeper: ChildProcess, layout: Layout) {
    this.#keeper = keeper;
    this.#layout = layout;
  }

  /** @throws ImageError `directory-locked`, `directory-not-usable`, `command-not-found` */
  static async take(layout: Layout): Promise<DirectoryLock> {
    const lock = new DirectoryLock(await startKeeper(layout), layout);
    try {
      await OWNER.write(layout.owner, { pid: process.pid, host: hostname() });
    } catch (error) {
      await lock.release(); // otherwise its keeper would hold the lock, and this process would never end
      throw error;
    }
    return lock;
  }

  /** Calls `listener` if the lock is lost because its keeper was killed. */
  onLost(listener: () => void): void {
    this.#keeper.once('exit', () => {
      if (!this.#released) listener();
    });
  }

  async release(): Promise<void> {
    this.#released = true;
    await rm(this.#layout.owner, { force: true }).catch(() => {}); // only the lock matters
    if (this.#keeper.exitCode !== null || this.#keeper.signalCode !== null) return;
    const exit = once(this.#keeper, 'exit');
    this.#keeper.stdin?.end();
    await exit;
  }
}

/** Starts the keeper and waits until it has the lock. */
async function startKeeper(layout: Layout): Promise<ChildProcess> {
  const limits = ['--timeout', `${RELEASE_PERIOD}`, '--conflict-exit-code', `${HELD_BY_ANOTHER}`];
  const keeper = spawn('flock', [...limits, '--no-fork', layout.lock, 'sh', '-c', KEEPER], {
    cwd: '/',
    env: inheritedEnvironment(),
    detached: true,
  });
  let complaint = '';
  keeper.stderr.on('data', (chunk: Buffer) => (complaint += String(chunk)));
  const held = once(keeper.stdout, 'data').then(() => 'held' as const);
  const ended = (once(keeper, 'close') as Promise<[number | null]>).then(([code]) => code);
  const outcome = await Promise.race([held, ended]).catch((cause: unknown) => {
    throw startError('flock', '/', { code: errnoOf(cause), cause }, 'install util-linux');
  });
  if (outcome === 'held') return keeper;
  if (outcome === HELD_BY_ANOTHER) throw await lockedBy(layout);
  const reason = complaint.trim() || `flock ended with code ${outcome}`;
  const remedy = 'grant the user that runs this program write access there';
  throw new ImageError('directory-not-usable', `"${layout.lock}" cannot be locked: ${reason}; ${remedy}`);
}

async function lockedBy(layout: Layout): Promise<ImageError> {
  const remedy = 'stop that process or give this one an images-dir of its own';
  const reason = `"${layout.root}" is in use by ${await describeOwner(layout)}; ${remedy}`;
  return new ImageError('directory-locked', reason);
}

async function describeOwner({ owner }: Layout): Promise<string> {
  // Not written yet, or truncated by a full disk. Only the lock matters.
  const other = await OWNER.read(owner).catch(() => undefined);
  return other === undefined ? 'another process' : `process ${other.pid} on host ${other.host}`;
}

/**
 * Describes the process that holds the lock of a directory; undefined if none does. It tests with a shared lock, which
 * it holds only for a moment. A builder that starts in that moment waits for it.
 *
 * @throws ImageError `directory-not-usable`, `command-not-found`
 */
export async function lockHolder(layout: Layout, signal: AbortSignal): Promise<string | undefined> {
  if (!existsSync(layout.lock)) return undefined; // flock would create the file
  const limits = ['--shared', '--nonblock', '--conflict-exit-code', `${HELD_BY_ANOTHER}`];
  const { exitCode, decisiveLines } = await runCommand('flock', [...limits, layout.lock, 'true'], {
    cwd: '/',
    signal,
  });
  if (exitCode === HELD_BY_ANOTHER) return await describeOwner(layout);
  if (exitCode === 0) return undefined;
  const remedy = 'run this command as the user that runs the builder';
  const reason = decisiveLines.join(' ') || 'flock failed';
  throw new ImageError('directory-not-usable', `"${layout.lock}" cannot be read: ${reason}; ${remedy}`);
}
