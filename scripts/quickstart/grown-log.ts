import { open } from 'node:fs/promises';

/** A log that somebody else writes, read as it grows. */
export class GrownLog {
  readonly #path: string;
  #position = 0;
  /** The beginning of a line of which the rest is still to come. */
  #begun = '';

  constructor(path: string) {
    this.#path = path;
  }

  /** The lines that were finished since the last call. */
  async newLines(): Promise<readonly string[]> {
    const file = await open(this.#path);
    try {
      const { size } = await file.stat();
      const buffer = Buffer.alloc(size - this.#position);
      const { bytesRead } = await file.read(buffer, 0, buffer.length, this.#position);
      this.#position += bytesRead;
      // As latin1, a character that lies on both sides of a cut is not spoilt.
      const lines = (this.#begun + buffer.toString('latin1', 0, bytesRead)).split('\n');
      this.#begun = lines.pop() ?? '';
      return lines.map((line) => Buffer.from(line, 'latin1').toString('utf8'));
    } finally {
      await file.close();
    }
  }
}
