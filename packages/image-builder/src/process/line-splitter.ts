import { StringDecoder } from 'node:string_decoder';

/** A line longer than this is cut in pieces: output without line ends must not fill the memory. */
const MAX_LINE_LENGTH = 64 * 1024;

/**
 * Cuts output into lines. A carriage return ends a line as well: that is how progress is shown on terminals.
 */
export class LineSplitter {
  readonly #decoder = new StringDecoder('utf8');
  #rest = '';

  /** The lines that `chunk` completes, without their ends. */
  push(chunk: Buffer): string[] {
    // A "\r" at the very end waits: a "\n" may follow it in the next chunk.
    const lines = (this.#rest + this.#decoder.write(chunk)).split(/\r\n|\n|\r(?!$)/);
    this.#rest = lines.pop() ?? '';
    while (this.#rest.length > MAX_LINE_LENGTH) {
      lines.push(this.#rest.slice(0, MAX_LINE_LENGTH));
      this.#rest = this.#rest.slice(MAX_LINE_LENGTH);
    }
    return lines;
  }

  /** What has come of a line that has not ended yet. */
  get rest(): string {
    return this.#rest;
  }

  /** What came after the last line end. */
  end(): string[] {
    const rest = (this.#rest + this.#decoder.end()).replace(/\r$/, '');
    this.#rest = '';
    return rest === '' ? [] : [rest];
  }
}
