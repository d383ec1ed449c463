import { existsSync, renameSync } from 'node:fs';
import type { SizeRotationSettings } from '../log-settings.ts';

/** By size, as Python's RotatingFileHandler: `<file>.1` is the newest of the old ones. */
export class SizeRotation {
  readonly #path: string;
  readonly #settings: SizeRotationSettings;

  constructor(path: string, settings: SizeRotationSettings) {
    this.#path = path;
    this.#settings = settings;
  }

  isDue(size: number, added: number): boolean {
    return size + added >= this.#settings.maxBytes && size > 0;
  }

  rotate(): void {
    for (let number = this.#settings.backups; number > 0; number -= 1) {
      const younger = number === 1 ? this.#path : `${this.#path}.${number - 1}`;
      if (existsSync(younger)) renameSync(younger, `${this.#path}.${number}`);
    }
  }
}
