import { closeSync, fchmodSync, fstatSync, openSync, statSync, writeSync } from 'node:fs';
import { Writable } from 'node:stream';
import { ConfigurationError } from '../configuration/fault.ts';
import { type Rotation, sizeRotation, timeRotation } from './log-rotation.ts';
import type { LogFileTarget, LogTarget } from './log-settings.ts';

/** An open target. */
export interface OpenTarget {
  readonly stream: Writable;
  close(): void;
}

/** @throws ConfigurationError for a file that cannot be written */
export function openTarget(target: LogTarget): OpenTarget {
  if (target.type !== 'file') return { stream: process[target.type], close: () => {} };
  const { filename } = target;
  const file = openFile(target);
  let failing = false;
  const stream = new Writable({
    decodeStrings: false,
    write: (text: string, _encoding, written) => {
      try {
        file.write(text);
        failing = false;
      } catch (error) {
        // A full disk must not end the daemon. Only the first failure in a row is printed.
        const { message } = error as Error;
        if (!failing) console.error(`cannot write to the log ${filename}; records are lost: ${message}`);
        failing = true;
      }
      written();
    },
  });
  return { stream, close: () => file.close() };
}

function openFile(target: LogFileTarget): LogFile {
  try {
    return new LogFile(target);
  } catch (cause) {
    const reason = `cannot open the log file: ${(cause as Error).message}`;
    const remedy = 'create its directory, or name another file in the file of -l';
    const fault = { line: 1, column: 1, severity: 'error', reason, remedy } as const;
    throw new ConfigurationError(target.filename, [fault], { cause });
  }
}

/** Mode of a new log; an existing log never gets a wider one. */
const MODE = 0o644;

/** A log file. Writes are synchronous, so that a crash loses no record and the order stays. */
export class LogFile {
  readonly #target: LogFileTarget;
  readonly #rotation: Rotation | undefined;
  #descriptor: number;

  /** @throws Error if the file cannot be opened */
  constructor(target: LogFileTarget) {
    const { filename, truncate, rotation } = target;
    this.#target = target;
    if (rotation?.by === 'size') this.#rotation = sizeRotation(filename, rotation);
    if (rotation?.by === 'time') this.#rotation = timeRotation(filename, rotation);
    this.#descriptor = openForOwner(filename, truncate ? 'w' : 'a');
  }

  /** @throws Error if the file cannot be written or rotated */
  write(text: string): void {
    const bytes = Buffer.from(text);
    if (this.#target.watched && this.#wasMoved()) this.#reopen();
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

  /** True if the path no longer leads to the open file. */
  #wasMoved(): boolean {
    const named = statSync(this.#target.filename, { throwIfNoEntry: false });
    const open = fstatSync(this.#descriptor);
    return named?.ino !== open.ino || named.dev !== open.dev;
  }
}

/** Opens a log that only its owner may write to, whatever the umask. The log of another user keeps its mode. */
function openForOwner(path: string, flags: 'a' | 'w'): number {
  const descriptor = openSync(path, flags, MODE);
  const state = fstatSync(descriptor);
  if (state.isFile() && state.uid === process.geteuid?.()) fchmodSync(descriptor, state.mode & MODE);
  return descriptor;
}
