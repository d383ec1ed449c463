import { closeSync, fchmodSync, fstatSync, openSync, statSync, writeSync } from 'node:fs';
import type { LogFileTarget } from '../log-settings.ts';
import { type Rotation, rotationOf } from './rotation.ts';

/** The widest mode of a log. */
const MODE = 0o644;

/**
 * A file that lines are appended to. It is written synchronously: whatever was logged is there when the process
 * dies, and in its order.
 */
export class LogFile {
  readonly #target: LogFileTarget;
  readonly #rotation: Rotation | undefined;
  #descriptor: number;

  /** @throws Error if it cannot be opened */
  constructor(target: LogFileTarget) {
    this.#target = target;
    this.#rotation = target.rotation && rotationOf(target.filename, target.rotation);
    this.#descriptor = openForOwner(target.filename, target.truncate ? 'w' : 'a');
  }

  /** @throws Error if it cannot be written, or not be rotated */
  write(text: string): void {
    const bytes = Buffer.from(text);
    if (this.#target.watched && this.#isElsewhere()) this.#reopen();
    if (this.#rotation?.isDue(fstatSync(this.#descriptor).size, bytes.length)) {
      this.#rotation.rotate();
      this.#reopen();
    }
    writeSync(this.#descriptor, bytes);
  }

  close(): void {
    closeSync(this.#descriptor);
  }

  #reopen(): void {
    const descriptor = openForOwner(this.#target.filename, 'a');
    closeSync(this.#descriptor);
    this.#descriptor = descriptor;
  }

  /** Whether the name is another file's by now, or nobody's. */
  #isElsewhere(): boolean {
    const [named, open] = [
      statSync(this.#target.filename, { throwIfNoEntry: false }),
      fstatSync(this.#descriptor),
    ];
    return named?.ino !== open.ino || named.dev !== open.dev;
  }
}

/** Opens a log that only its owner may write, whatever the umask. The log of another user keeps its mode. */
function openForOwner(path: string, flags: 'a' | 'w'): number {
  const descriptor = openSync(path, flags, MODE);
  const state = fstatSync(descriptor);
  if (state.isFile() && state.uid === process.geteuid?.()) fchmodSync(descriptor, state.mode & MODE);
  return descriptor;
}
