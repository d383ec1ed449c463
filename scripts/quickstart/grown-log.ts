import { open } from 'node:fs/promises';

/** Reads a log that another process is writing. */
export class GrownLog {
  readonly #path: string;
  #position = 0;
  /** Beginning of an incomplete line. */
  #begun = '';

  constructor(path: string) {
    this.#path = path;
  }

  /** Returns the lines completed since the last call. */
  async newLines(): Promise<readonly string[]> {
    const file = await open(this.#path);
    try {
      const { size } = await file.stat();
      const buffer = Buffer.alloc(size - this.#position);
      const { bytesRead } = await file.read(buffer, 0, buffer.length, this.#position);
      this.#position += bytesRead;
      // latin1 keeps the bytes of a character that is split between two reads.
      const lines = (this.#begun + buffer.toString('latin1', 0, bytesRead)).split('\n');
      this.#begun = lines.pop() ?? '';
      return lines.map((line) => Buffer.from(line, 'latin1').toString('utf8'));
    } finally {
      await file.close();
    }
  }
}
