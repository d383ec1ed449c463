import type { Readable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { errnoOf } from '../system-error.ts';

/** Maximum length of a line. Longer lines are split, because output without line ends must not fill the memory. */
const MAX_LINE_LENGTH = 64 * 1024;

/**
 * Splits output into lines. A carriage return also ends a line, because programs show progress with it.
 */
export class LineSplitter {
  readonly #decoder = new StringDecoder('utf8');
  /** The text after the last line end. */
  rest = '';

  /** Returns the lines that `chunk` completes, without line ends. */
  push(chunk: Buffer): string[] {
    // A "\r" at the end of a chunk is kept, because the next chunk may begin with "\n".
    const lines = (this.rest + this.#decoder.write(chunk)).split(/\r\n|\n|\r(?!$)/);
    this.rest = lines.pop() ?? '';
    while (this.rest.length > MAX_LINE_LENGTH) {
      lines.push(this.rest.slice(0, MAX_LINE_LENGTH));
      this.rest = this.rest.slice(MAX_LINE_LENGTH);
    }
    return lines;
  }

  /** Returns the text after the last line end. */
  end(): string[] {
    const rest = (this.rest + this.#decoder.end()).replace(/\r$/, '');
    this.rest = '';
    return rest === '' ? [] : [rest];
  }
}

/**
 * Reads the lines of a stream until it ends or is destroyed.
 *
 * @param onLine the next output is read when the returned promise resolves
 * @param onPartialLine called with an incomplete last line, each time it grows
 */
export async function readLines(
  stream: Readable,
  onLine: (line: string) => void | Promise<void>,
  onPartialLine?: (text: string) => void,
): Promise<void> {
  const splitter = new LineSplitter();
  const take = async (lines: readonly string[]): Promise<void> => {
    for (const line of lines) {
      const held = onLine(line);
      if (held !== undefined) await held;
    }
  };
  try {
    for await (const chunk of stream) {
      await take(splitter.push(chunk as Buffer));
      if (splitter.rest !== '') onPartialLine?.(splitter.rest);
    }
  } catch (error) {
    // The stream was destroyed, because a process that outlives its command holds it open.
    if (errnoOf(error) !== 'ERR_STREAM_PREMATURE_CLOSE') throw error;
  }
  await take(splitter.end());
}
