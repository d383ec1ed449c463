import {
  closeSync,
  existsSync,
  fchmodSync,
  fstatSync,
  openSync,
  renameSync,
  statSync,
  writeSync,
} from 'node:fs';
import type { LogFileTarget, SizeRotationSettings, TimeRotationSettings } from '../log-settings.ts';
import { TimeRotation } from './time-rotation.ts';

/** Mode of a new log; an existing log never gets a wider one. */
const MODE = 0o644;

/** A log file. Writes are synchronous, so that a crash loses no record and the order stays. */
export class LogFile {
  readonly #target: LogFileTarget;
  readonly #rotation: Rotation | undefined;
  #descriptor: number;

  /** @throws Error if the file cannot be opened */
  constructor(target: LogFileTarget) {
    this.#target = target;
    this.#rotation = target.rotation && rotationOf(target.filename, target.rotation);
    this.#descriptor = openForOwner(target.filename, target.truncate ? 'w' : 'a');
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
    const [named, open] = [
      statSync(this.#target.filename, { throwIfNoEntry: false }),
      fstatSync(this.#descriptor),
    ];
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

/** Decides when a log file is rotated, and renames it. */
interface Rotation {
  /**
   * @param size current size in bytes
   * @param added size of the next record in bytes
   */
  isDue(size: number, added: number): boolean;
  /** Renames the file and deletes the oldest. */
  rotate(): void;
}

function rotationOf(path: string, settings: SizeRotationSettings | TimeRotationSettings): Rotation {
  return settings.by === 'size' ? sizeRotation(path, settings) : new TimeRotation(path, settings);
}

/** Rotates by size, as Python's RotatingFileHandler does: `<file>.1` is the newest old file. */
function sizeRotation(path: string, { maxBytes, backups }: SizeRotationSettings): Rotation {
  return {
    isDue: (size, added) => size + added >= maxBytes && size > 0,
    rotate: () => {
      for (let number = backups; number > 0; number -= 1) {
        const younger = number === 1 ? path : `${path}.${number - 1}`;
        if (existsSync(younger)) renameSync(younger, `${path}.${number}`);
      }
    },
  };
}
