import {
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  ftruncateSync,
  lstatSync,
  openSync,
  statSync,
  writeSync,
} from 'node:fs';
import { Writable } from 'node:stream';
import { foreignPart, UNTRICKED } from '@nodepool-builder/image-builder/internal';
import { ConfigurationError } from '../yaml/diagnostic.ts';
import { type Rotation, sizeRotation, timeRotation } from './log-rotation.ts';
import type { LogFileTarget, LogTarget } from './log-settings.ts';

/**
 * Opens a stream of this process, or a file.
 *
 * @throws ConfigurationError for a file that cannot be written
 */
export function openTarget(target: LogTarget): Writable {
  if (target.type !== 'file') return process[target.type];
  try {
    return new LogFile(target);
  } catch (cause) {
    const reason = `cannot open the log file: ${(cause as Error).message}`;
    const remedy = 'create its directory, or correct the path in the file of -l';
    const diagnostic = { line: 1, column: 1, severity: 'error', reason, remedy } as const;
    throw new ConfigurationError(target.filename, [diagnostic], { cause });
  }
}

/** Mode of a new log. The permissions of an existing log are never extended. */
const MODE = 0o644;

/** A log file. Writes are synchronous, so that a crash loses no record and the order is kept. */
export class LogFile extends Writable {
  readonly #target: LogFileTarget;
  readonly #rotation: Rotation | undefined;
  #descriptor: number;
  #isFailing = false;

  /** @throws Error if the file cannot be opened */
  constructor(target: LogFileTarget) {
    super({ decodeStrings: false });
    const { filename, truncate, rotation } = target;
    this.#target = target;
    if (rotation?.by === 'size') this.#rotation = sizeRotation(filename, rotation);
    if (rotation?.by === 'time') this.#rotation = timeRotation(filename, rotation);
    this.#descriptor = openForOwner(filename, truncate === true);
  }

  /** Reopens the file, or opens a new one if it was moved. If this fails, records still go to the moved file. */
  reopen(): void {
    try {
      this.#reopen();
    } catch (error) {
      console.error(`cannot reopen the log ${this.#target.filename}: ${(error as Error).message}`);
    }
  }

  override _write(text: string, _encoding: BufferEncoding, written: () => void): void {
    try {
      this.#append(Buffer.from(text));
      this.#isFailing = false;
    } catch (error) {
      // A full disk must not end the daemon. Only the first failure in a row is printed.
      const problem = `cannot write to the log ${this.#target.filename}; records are lost`;
      if (!this.#isFailing) console.error(`${problem}: ${(error as Error).message}`);
      this.#isFailing = true;
    }
    written();
  }

  override _destroy(error: Error | null, closed: (error?: Error | null) => void): void {
    closeSync(this.#descriptor);
    closed(error);
  }

  #append(bytes: Buffer): void {
    if (this.#target.watched && this.#wasMoved()) this.#reopen();
    if (this.#rotation?.isDue(fstatSync(this.#descriptor).size, bytes.length)) {
      this.#rotation.rotate();
      this.#reopen();
    }
    writeSync(this.#descriptor, bytes);
  }

  #reopen(): void {
    const descriptor = openForOwner(this.#target.filename, false);
    closeSync(this.#descriptor);
    this.#descriptor = descriptor;
  }

  /** Returns whether the path no longer leads to the open file. */
  #wasMoved(): boolean {
    const named = statSync(this.#target.filename, { throwIfNoEntry: false });
    const open = fstatSync(this.#descriptor);
    return named?.ino !== open.ino || named.dev !== open.dev;
  }
}

/**
 * Opens a log that only its owner may write to, regardless of the umask. The log of another user keeps its mode. A link
 * or a FIFO, such as /dev/stdout, is accepted unless another user may have created it.
 */
function openForOwner(path: string, truncates: boolean): number {
  const named = lstatSync(path, { throwIfNoEntry: false });
  const isPlain = named === undefined || named.isFile() || foreignPart(path) !== undefined;
  const flags = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | (isPlain ? UNTRICKED : 0);
  const descriptor = openSync(path, flags, MODE);
  const state = fstatSync(descriptor);
  if (isPlain && !state.isFile()) {
    closeSync(descriptor);
    throw new Error(`${path} is not a regular file, and another user may have created it`);
  }
  if (state.isFile() && state.uid === process.geteuid?.()) fchmodSync(descriptor, state.mode & MODE);
  if (truncates && state.isFile()) ftruncateSync(descriptor);
  return descriptor;
}
